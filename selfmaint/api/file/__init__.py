"""What a warehouse file says: the views, where everything is, and with what it is opened."""
