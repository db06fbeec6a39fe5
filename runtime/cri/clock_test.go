package cri_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// What ended before the clock was set back has times in the future. It is not
// newer for that: the back-off goes by the instance that was made last.
func TestACrashLoopIsBackedOffFromAfterTheClockWasSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.has("img:1")
		rt, _ := f.engine(t, cri.Config{})
		pod := podOf(container("web"))
		syncs(t, rt, pod)
		f.exits("web", 1)
		old := f.newest("web")
		old.created = old.created.Add(time.Hour)
		old.started = old.started.Add(time.Hour)
		old.ended = old.ended.Add(time.Hour)
		starts := 0
		for range 600 {
			time.Sleep(time.Second)
			_, _ = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
			if len(f.running()) > 0 {
				starts++
				f.exits("web", 1)
			}
		}
		require.LessOrEqual(t, starts, 7)
	})
}
