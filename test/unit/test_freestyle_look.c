#include "unit.h"
void test_freestyle_look(void) {}
