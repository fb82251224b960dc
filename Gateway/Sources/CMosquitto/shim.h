#include <mosquitto.h>
#include <sys/eventfd.h>
