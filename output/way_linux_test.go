package output

import "testing"

// setNoRenameat2 makes this test publish as other systems do.
func setNoRenameat2(t *testing.T) {
	noRenameat2 = true
	t.Cleanup(func() { noRenameat2 = false })
}
