package cri_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// A container whose creation had no response is started by a later sync, and its exit is followed by the
// delay of a second crash.
func TestAnInstanceWhoseCreationHadNoResponseCountsForTheBackoff(t *testing.T) { // rt-91
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		rt, _ := f.engine(t, cri.Config{})
		pod := podOf(container("web"))
		syncs(t, rt, pod)
		require.NoError(t, f.mem.Exit("u-1", "web", 1))

		ctx, cancel := context.WithCancel(t.Context())
		f.after = func(op, _ string) error {
			if op != "CreateContainer" || ctx.Err() != nil {
				return nil
			}
			cancel() // so that the runtime is not listed
			return assert.AnError
		}
		_, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
		require.Error(t, err)
		syncs(t, rt, pod)
		require.NoError(t, f.mem.Exit("u-1", "web", 1), "it was started")

		res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.Error(t, err)
		require.Len(t, res.Actions, 1)
		assert.Equal(t, "CrashLoopBackOff", res.Actions[0].Reason)
	})
}
