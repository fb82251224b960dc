#ifndef CDBUS_PRIVATE_H
#define CDBUS_PRIVATE_H

#include "CBlueCapDBus.h"

#include <dbus/dbus.h>

#endif
