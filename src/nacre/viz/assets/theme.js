// Light and dark, by preference or by choice; printed pages are light.

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : window.matchMedia('(prefers-color-scheme: dark)').matches;
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  byId('theme-toggle').textContent = isDark() ? 'Light' : 'Dark';
  timeline.retheme();
  document.dispatchEvent(new Event('retheme'));
}

function listenToTheme() {
  byId('theme-toggle').addEventListener('click', () => setTheme(isDark() ? 'light' : 'dark'));
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => setTheme(document.documentElement.dataset.theme));
  let before;
  window.addEventListener('beforeprint', () => {
    before = document.documentElement.dataset.theme;
    setTheme('light');
    timeline.draw(); // at once: the printer does not wait for a frame
  });
  window.addEventListener('afterprint', () => setTheme(before));
  setTheme(document.documentElement.dataset.theme);
}
