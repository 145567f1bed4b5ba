"""The promises of an image, judged without the program that it was made of."""
