// This module declares nothing: linking it is what it is for. See NoLocales.c.
