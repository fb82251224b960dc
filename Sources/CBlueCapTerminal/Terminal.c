#define NCURSES_WIDECHAR 1
#include "CBlueCapTerminal.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static SCREEN *screen;

/// ncurses encodes text as the locale does. Without a locale, as in most containers, terminals still use UTF-8.
static void use_locale(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (unsigned int i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value) {
            if (!setlocale(LC_CTYPE, ""))
                setlocale(LC_CTYPE, "C.UTF-8");
            return;
        }
    }
    setlocale(LC_CTYPE, "C.UTF-8");
}

bool cterminal_open(bool hasColours)
{
    use_locale();
    // `initscr` would end the process if the type of the terminal is unknown.
    screen = newterm(NULL, stdout, stdin);
    if (!screen)
        return false;
    if (!tigetstr("cup") || tigetstr("cup") == (char *)-1) {
        cterminal_close();
        delscreen(screen);
        screen = NULL;
        return false;
    }
    cbreak();
    noecho();
    nonl();
    intrflush(stdscr, false);
    keypad(stdscr, true);
    nodelay(stdscr, true);
    // In milliseconds: how long the rest of a key may take after its ESC, also over a network.
    set_escdelay(50);
    mouseinterval(200);
    mousemask(BUTTON1_CLICKED | BUTTON1_PRESSED | BUTTON1_DOUBLE_CLICKED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
    if (hasColours && has_colors()) {
        start_color();
        use_default_colors();
        for (short colour = 1; colour < 8; colour++)
            init_pair(colour, colour, -1);
    }
    return true;
}

void cterminal_close(void)
{
    if (screen && !isendwin())
        endwin();
}

void cterminal_reopen(void)
{
    // The programs that ran meanwhile have drawn over everything.
    clearok(curscr, true);
    refresh();
}

void cterminal_resize(int width, int height)
{
    resizeterm(height, width);
    clearok(curscr, true);
}

void cterminal_erase(void)
{
    erase();
}

void cterminal_draw(int row, int column, const char *text, int attributes, int colour)
{
    wchar_t wide[1024];
    size_t count = mbstowcs(wide, text, sizeof wide / sizeof *wide - 1);
    if (count == (size_t)-1)
        return;
    wide[count] = 0;
    attr_t style = A_NORMAL;
    if (attributes & CTERMINAL_BOLD)
        style |= A_BOLD;
    if (attributes & CTERMINAL_DIM)
        style |= A_DIM;
    if (attributes & CTERMINAL_REVERSE)
        style |= A_REVERSE;
    attr_set(style, (short)colour, NULL);
    mvaddnwstr(row, column, wide, (int)count);
}

void cterminal_show(int row, int column)
{
    curs_set(column >= 0);
    if (column >= 0)
        move(row, column);
    refresh();
}

static uint32_t mouse_key(int *row)
{
    MEVENT event;
    if (getmouse(&event) != OK)
        return CTERMINAL_OTHER;
    *row = event.y;
    if (event.bstate & BUTTON1_DOUBLE_CLICKED)
        return CTERMINAL_DOUBLE_CLICK;
    if (event.bstate & (BUTTON1_CLICKED | BUTTON1_PRESSED))
        return CTERMINAL_CLICK;
    if (event.bstate & BUTTON4_PRESSED)
        return CTERMINAL_WHEEL_UP;
    return event.bstate & BUTTON5_PRESSED ? CTERMINAL_WHEEL_DOWN : CTERMINAL_OTHER;
}

uint32_t cterminal_key(int *row)
{
    wint_t key;
    switch (get_wch(&key)) {
    case ERR:
        return CTERMINAL_NO_KEY;
    case OK:
        return key == '\r' || key == '\n' ? CTERMINAL_ENTER : key == 0x7F || key == 8 ? CTERMINAL_BACKSPACE : key;
    }
    switch (key) {
    case KEY_UP: return CTERMINAL_UP;
    case KEY_DOWN: return CTERMINAL_DOWN;
    case KEY_LEFT: return CTERMINAL_LEFT;
    case KEY_RIGHT: return CTERMINAL_RIGHT;
    case KEY_HOME: return CTERMINAL_HOME;
    case KEY_END: return CTERMINAL_END;
    case KEY_PPAGE: return CTERMINAL_PAGE_UP;
    case KEY_NPAGE: return CTERMINAL_PAGE_DOWN;
    case KEY_BACKSPACE: return CTERMINAL_BACKSPACE;
    case KEY_DC: return CTERMINAL_DELETE;
    case KEY_ENTER: return CTERMINAL_ENTER;
    case KEY_BTAB: return CTERMINAL_BACK_TAB;
    case KEY_MOUSE: return mouse_key(row);
    default: return CTERMINAL_OTHER;
    }
}
