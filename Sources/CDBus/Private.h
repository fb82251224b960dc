#ifndef CDBUS_PRIVATE_H
#define CDBUS_PRIVATE_H

#include "CDBus.h"

#include <dbus/dbus.h>

#endif
