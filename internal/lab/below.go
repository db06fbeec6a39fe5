package lab

import (
	"cmp"
	"os"
	"testing"
)

// Below logs a measured figure, such as a duration on a machine that may be busy with something
// else. With KUBEPARTS_FULL=1 the test fails unless the figure is below limit; otherwise
// performance decides nothing.
func Below[N cmp.Ordered](t testing.TB, what string, is, limit N) {
	t.Helper()
	switch {
	case is < limit:
		t.Logf("%s: %v, limit %v", what, is, limit)
	case os.Getenv("KUBEPARTS_FULL") == "1":
		t.Errorf("%s: %v, limit %v", what, is, limit)
	default:
		t.Logf("%s: %v, ABOVE THE LIMIT %v (it fails with KUBEPARTS_FULL=1)", what, is, limit)
	}
}
