package logrotate_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/cri/logrotate"
)

// leftover creates n rotated files that an earlier agent did not compress, and the remains of a
// compression, and returns what must become of them with at most four rotated files.
func leftover(t *testing.T, log string, n int) (want []string) {
	t.Helper()
	for i := range n {
		name := fmt.Sprintf("%s.20260102-0304%02d", log, i)
		require.NoError(t, os.WriteFile(name, []byte(fmt.Sprintln(i)), 0o640))
	}
	require.NoError(t, os.WriteFile(log+".20260102-030400.tmp", nil, 0o640))
	return []string{
		"0.log", fmt.Sprintf("0.log.20260102-0304%02d.gz", n-4), fmt.Sprintf("0.log.20260102-0304%02d.gz", n-3),
		fmt.Sprintf("0.log.20260102-0304%02d.gz", n-2), fmt.Sprintf("0.log.20260102-0304%02d", n-1),
	}
}

// The agent was killed before it compressed, or MaxFiles is lower now: the rotated files of a log are
// pruned and compressed when the agent starts, although nothing is written to it.
func TestRotatedFilesOfAnIdleLogAreCompressedAndPruned(t *testing.T) {
	for name, run := range map[string]func(t *testing.T, r *logrotate.Rotator, done func() bool){
		"Run": func(t *testing.T, r *logrotate.Rotator, done func() bool) {
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() { assert.NoError(t, r.Run(ctx)) })
			assert.Eventually(t, done, 30*time.Second, 5*time.Millisecond)
			cancel()
			wg.Wait()
		},
		"Pass": func(t *testing.T, r *logrotate.Rotator, done func() bool) {
			require.NoError(t, r.Pass(t.Context()))
			assert.True(t, done())
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			want := leftover(t, f.path, 9)
			r, err := logrotate.New(logrotate.Config{Runtime: f, MaxSize: 1 << 20, MaxFiles: 5})
			require.NoError(t, err)
			run(t, r, func() bool { return slices.Equal(slices.Sorted(slices.Values(want)), f.files(t)) })
			assert.ElementsMatch(t, want, f.files(t))
			assert.Equal(t, "5\n6\n7\n8\n", f.text(t))
			assert.Equal(t, 1, f.opened, "the log itself was not rotated")
		})
	}
}

// A log whose rotated files are as they should be is not changed.
func TestTidyFilesAreNotChanged(t *testing.T) {
	f := newFake(t)
	leftover(t, f.path, 9)
	r, err := logrotate.New(logrotate.Config{Runtime: f, MaxSize: 1 << 20, MaxFiles: 5})
	require.NoError(t, err)
	require.NoError(t, r.Pass(t.Context()))
	before := f.files(t)
	require.NoError(t, r.Pass(t.Context()))
	assert.Equal(t, before, f.files(t))
}
