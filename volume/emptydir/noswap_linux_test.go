package emptydir

import "testing"

// vol-45
func TestKernelsThatSupportNoSwap(t *testing.T) {
	for release, want := range map[string]bool{"6.3.9": false, "6.4.0": true, "6.12.1-cloud": true, "7.0": true, "5.15.0": false, "": false, "x.y": false} {
		if got := supportsNoSwap(release); got != want {
			t.Errorf("%q: %v", release, got)
		}
	}
}
