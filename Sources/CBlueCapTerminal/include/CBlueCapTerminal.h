/// The functions of ncurses that a full-screen program needs, without its macros and variadic functions, which Swift does not
/// import. One thread at a time may call them.
#ifndef CBLUECAPTERMINAL_H
#define CBLUECAPTERMINAL_H

#include <stdbool.h>
#include <stdint.h>

/// How a text is drawn; the values can be combined. A colour takes the place of the terminal's text colour.
enum {
    CTERMINAL_BOLD = 1,
    CTERMINAL_DIM = 2,
    CTERMINAL_REVERSE = 4,
};

/// A key, as `cterminal_key` returns it, that has no character.
enum {
    CTERMINAL_NO_KEY = 0,
    CTERMINAL_UP = 0x110000,
    CTERMINAL_DOWN,
    CTERMINAL_LEFT,
    CTERMINAL_RIGHT,
    CTERMINAL_HOME,
    CTERMINAL_END,
    CTERMINAL_PAGE_UP,
    CTERMINAL_PAGE_DOWN,
    CTERMINAL_BACKSPACE,
    CTERMINAL_DELETE,
    CTERMINAL_ENTER,
    CTERMINAL_BACK_TAB,
    CTERMINAL_CLICK,
    CTERMINAL_DOUBLE_CLICK,
    CTERMINAL_WHEEL_UP,
    CTERMINAL_WHEEL_DOWN,
    CTERMINAL_OTHER,
};

/// Starts the full-screen mode on standard input and output. Returns whether the terminal can do that: its type must be known,
/// and it must be able to move the cursor.
///
/// - Parameter hasColours: Whether colours are used if the terminal has them.
bool cterminal_open(bool hasColours);

/// Returns the terminal to the state before `cterminal_open`.
void cterminal_close(void);

/// Continues after `cterminal_close`, and draws everything again with the next `cterminal_show`.
void cterminal_reopen(void);

/// Adapts to the terminal's new size, in cells.
void cterminal_resize(int width, int height);

/// Removes everything that was drawn.
void cterminal_erase(void);

/// Draws a text in UTF-8 at a place; what does not fit in the row is cut.
///
/// - Parameter colour: 1 to 7 as in ECMA-48 (1 is red), or 0 for the terminal's text colour.
void cterminal_draw(int row, int column, const char *text, int attributes, int colour);

/// Writes what has changed to the terminal. The cursor is shown at this place; it is hidden if the column is negative.
void cterminal_show(int row, int column);

/// Returns the next key that was pressed: a Unicode scalar, or one of the values above; `CTERMINAL_NO_KEY` if there is none.
///
/// - Parameter row: The row of a click.
uint32_t cterminal_key(int *row);

#endif
