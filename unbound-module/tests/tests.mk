# SPDX-License-Identifier: BSD-3-Clause
# Unit tests that need Unbound's own code: make reads this in Unbound's build tree, after Unbound's Makefile, and writes
# into OUT.
$(OUT)/test_changes.lo: $(HYDNS_DIR)/tests/test_changes.c
	$(COMPILE) -o $@ -c $<

$(OUT)/test_changes: $(OUT)/test_changes.lo worker_cb.lo $(COMMON_OBJ) $(SLDNS_OBJ) $(COMPAT_OBJ)
	$(LINK) -Wl,--wrap=slabhash_insert -o $@ $^ $(SSLLIB) $(LIBS) -lcmocka
