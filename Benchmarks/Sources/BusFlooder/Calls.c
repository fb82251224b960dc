#include "Calls.h"

#include <string.h>

static const char introspection[] =
    "<!DOCTYPE node PUBLIC \"-//freedesktop//DTD D-BUS Object Introspection 1.0//EN\" "
    "\"http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd\">\n"
    "<node><interface name=\"org.freedesktop.DBus.Properties\"/></node>";

static void send(DBusConnection *connection, DBusMessage *message) {
    dbus_connection_send(connection, message, NULL);
    dbus_message_unref(message);
}

static void fail(DBusConnection *connection, DBusMessage *call, const char *name, const char *text) {
    send(connection, dbus_message_new_error(call, name, text));
}

static const struct device *device_at(const struct room *room, const char *path) {
    for (size_t i = 0; i < room->announced; i++) {
        if (strcmp(room->devices[i].path, path) == 0) return &room->devices[i];
    }
    return NULL;
}

static void get_managed_objects(DBusConnection *connection, DBusMessage *call, const struct room *room) {
    DBusMessage *reply = dbus_message_new_method_return(call);
    DBusMessageIter body, objects, entry;
    const char *path = "/org/bluez";
    dbus_message_iter_init_append(reply, &body);
    dbus_message_iter_open_container(&body, DBUS_TYPE_ARRAY, "{oa{sa{sv}}}", &objects);
    dbus_message_iter_open_container(&objects, DBUS_TYPE_DICT_ENTRY, NULL, &entry);
    dbus_message_iter_append_basic(&entry, DBUS_TYPE_OBJECT_PATH, &path);
    append_service_interfaces(&entry);
    dbus_message_iter_close_container(&objects, &entry);
    path = ADAPTER_PATH;
    dbus_message_iter_open_container(&objects, DBUS_TYPE_DICT_ENTRY, NULL, &entry);
    dbus_message_iter_append_basic(&entry, DBUS_TYPE_OBJECT_PATH, &path);
    append_adapter_interfaces(&entry, &room->adapter);
    dbus_message_iter_close_container(&objects, &entry);
    for (size_t i = 0; i < room->announced; i++) {
        path = room->devices[i].path;
        dbus_message_iter_open_container(&objects, DBUS_TYPE_DICT_ENTRY, NULL, &entry);
        dbus_message_iter_append_basic(&entry, DBUS_TYPE_OBJECT_PATH, &path);
        append_device_interfaces(&entry, &room->devices[i]);
        dbus_message_iter_close_container(&objects, &entry);
    }
    dbus_message_iter_close_container(&body, &objects);
    send(connection, reply);
}

static void introspect(DBusConnection *connection, DBusMessage *call) {
    DBusMessage *reply = dbus_message_new_method_return(call);
    const char *text = introspection;
    dbus_message_append_args(reply, DBUS_TYPE_STRING, &text, DBUS_TYPE_INVALID);
    send(connection, reply);
}

static void get_property(DBusConnection *connection, DBusMessage *call, const struct room *room) {
    const char *interface, *name = NULL, *path = dbus_message_get_path(call);
    const dbus_bool_t one = dbus_message_has_member(call, "Get");
    const dbus_bool_t readable =
        one ? dbus_message_get_args(
                  call, NULL, DBUS_TYPE_STRING, &interface, DBUS_TYPE_STRING, &name, DBUS_TYPE_INVALID)
            : dbus_message_get_args(call, NULL, DBUS_TYPE_STRING, &interface, DBUS_TYPE_INVALID);
    if (!readable) return fail(connection, call, DBUS_ERROR_INVALID_ARGS, "Invalid arguments in method call");

    const struct device *device = device_at(room, path);
    const dbus_bool_t is_adapter = strcmp(path, ADAPTER_PATH) == 0 && strcmp(interface, "org.bluez.Adapter1") == 0;
    const dbus_bool_t is_device = device != NULL && strcmp(interface, "org.bluez.Device1") == 0;
    DBusMessage *reply = dbus_message_new_method_return(call);
    DBusMessageIter body;
    dbus_bool_t known = is_adapter || is_device;
    dbus_message_iter_init_append(reply, &body);
    if (is_adapter && one) known = append_adapter_property(&body, &room->adapter, name);
    if (is_adapter && !one) append_adapter_properties(&body, &room->adapter);
    if (is_device && one) known = append_device_property(&body, device, name);
    if (is_device && !one) append_device_properties(&body, device);
    if (known) return send(connection, reply);
    dbus_message_unref(reply);
    fail(connection, call, DBUS_ERROR_INVALID_ARGS, "No such interface or property");
}

static void announce_discovering(DBusConnection *connection, const struct room *room) {
    DBusMessage *signal =
        dbus_message_new_signal(ADAPTER_PATH, "org.freedesktop.DBus.Properties", "PropertiesChanged");
    DBusMessageIter body, properties, entry, invalidated;
    const char *interface = "org.bluez.Adapter1", *name = "Discovering";
    dbus_message_iter_init_append(signal, &body);
    dbus_message_iter_append_basic(&body, DBUS_TYPE_STRING, &interface);
    dbus_message_iter_open_container(&body, DBUS_TYPE_ARRAY, "{sv}", &properties);
    dbus_message_iter_open_container(&properties, DBUS_TYPE_DICT_ENTRY, NULL, &entry);
    dbus_message_iter_append_basic(&entry, DBUS_TYPE_STRING, &name);
    append_adapter_property(&entry, &room->adapter, name);
    dbus_message_iter_close_container(&properties, &entry);
    dbus_message_iter_close_container(&body, &properties);
    dbus_message_iter_open_container(&body, DBUS_TYPE_ARRAY, "s", &invalidated);
    dbus_message_iter_close_container(&body, &invalidated);
    send(connection, signal);
}

static void set_discovering(DBusConnection *connection, DBusMessage *call, struct room *room, dbus_bool_t on) {
    if (on && room->adapter.discovering) {
        return fail(connection, call, "org.bluez.Error.InProgress", "Operation already in progress");
    }
    if (!on && !room->adapter.discovering) {
        return fail(connection, call, "org.bluez.Error.Failed", "No discovery started");
    }
    room->adapter.discovering = on;
    send(connection, dbus_message_new_method_return(call));
    announce_discovering(connection, room);
}

DBusHandlerResult answer_call(DBusConnection *connection, DBusMessage *call, void *data) {
    struct room *room = data;
    const char *interface = dbus_message_get_interface(call);
    if (dbus_message_get_type(call) != DBUS_MESSAGE_TYPE_METHOD_CALL || interface == NULL) {
        return DBUS_HANDLER_RESULT_NOT_YET_HANDLED;
    }
    if (strcmp(interface, "org.freedesktop.DBus.ObjectManager") == 0) {
        get_managed_objects(connection, call, room);
    } else if (strcmp(interface, "org.freedesktop.DBus.Introspectable") == 0) {
        introspect(connection, call);
    } else if (strcmp(interface, "org.freedesktop.DBus.Properties") == 0 && dbus_message_has_member(call, "Set")) {
        // Power and the like: this adapter is on and stays on.
        send(connection, dbus_message_new_method_return(call));
    } else if (strcmp(interface, "org.freedesktop.DBus.Properties") == 0) {
        get_property(connection, call, room);
    } else if (strcmp(interface, "org.bluez.AgentManager1") == 0
               || dbus_message_is_method_call(call, "org.bluez.Adapter1", "SetDiscoveryFilter")) {
        send(connection, dbus_message_new_method_return(call));
    } else if (dbus_message_is_method_call(call, "org.bluez.Adapter1", "StartDiscovery")) {
        set_discovering(connection, call, room, TRUE);
    } else if (dbus_message_is_method_call(call, "org.bluez.Adapter1", "StopDiscovery")) {
        set_discovering(connection, call, room, FALSE);
    } else {
        for (size_t i = 0; i < room->connectable; i++) {
            if (peripheral_answer(connection, call, &room->peripherals[i])) return DBUS_HANDLER_RESULT_HANDLED;
        }
        return DBUS_HANDLER_RESULT_NOT_YET_HANDLED;
    }
    return DBUS_HANDLER_RESULT_HANDLED;
}
