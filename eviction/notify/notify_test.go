package notify_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/eviction/notify"
)

var _ eviction.Notifier = (*notify.Notifier)(nil)

func TestALevelIsReportedOnceUntilTheUsageFalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var used, reported atomic.Int64
		used.Store(10)
		n, err := notify.New(notify.Config{Usage: func() (int64, error) { return used.Load(), nil }})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- n.Run(ctx, func() { reported.Add(1) }) }()
		use := func(n int64) int64 {
			used.Store(n)
			time.Sleep(251 * time.Millisecond)
			return reported.Swap(0)
		}
		assert.EqualValues(t, 0, use(100), "no level is set")
		require.NoError(t, n.Update([]int64{90, 200}))
		synctest.Wait()
		assert.EqualValues(t, 1, reported.Swap(0), "it is exceeded already: at once")
		assert.EqualValues(t, 0, use(150))
		assert.EqualValues(t, 1, use(200), "the next one")
		assert.EqualValues(t, 0, use(100))
		assert.EqualValues(t, 0, use(89))
		assert.EqualValues(t, 1, use(90))
		require.NoError(t, n.Update([]int64{91}))
		synctest.Wait()
		assert.EqualValues(t, 0, use(90))
		assert.EqualValues(t, 1, use(91))
		stop()
		assert.NoError(t, <-ended)
	})
}

func TestALastingReadFailureIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gone atomic.Bool
		n, err := notify.New(notify.Config{Poll: time.Second, Usage: func() (int64, error) {
			if gone.Load() {
				return 0, errors.New("not found")
			}
			return 1, nil
		}})
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- n.Run(t.Context(), func() {}) }()
		time.Sleep(time.Second / 2)
		gone.Store(true)
		time.Sleep(15 * time.Second)
		gone.Store(false) // created again
		time.Sleep(30 * time.Second)
		assert.Empty(t, ended)
		gone.Store(true)
		time.Sleep(30 * time.Second)
		assert.EqualError(t, <-ended, "notify: read memory usage: not found")
	})
}

func TestADirectoryThatIsNoCgroupIsRejected(t *testing.T) {
	_, err := notify.New(notify.Config{})
	assert.EqualError(t, err, "notify: Config.Dir is empty")
	_, err = notify.New(notify.Config{Dir: "x", Poll: -1})
	assert.EqualError(t, err, "notify: Config.Poll is negative: -1ns")
	dir := t.TempDir()
	_, err = notify.New(notify.Config{Dir: dir})
	assert.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "is not a cgroup with a memory controller")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "memory.current"), []byte("max\n"), 0o600))
	_, err = notify.New(notify.Config{Dir: dir})
	assert.ErrorContains(t, err, `notify: read memory usage: strconv.ParseInt: parsing "max"`)
	for _, name := range []string{"memory.current", "memory.usage_in_bytes"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("12\n"), 0o600))
		_, err = notify.New(notify.Config{Dir: dir})
		assert.NoError(t, err)
	}
}

// A directory whose files are named like a kernel's emits no notifications: it is
// polled.
func TestFilesWithoutNotificationsArePolled(t *testing.T) {
	for _, file := range []string{"memory.current", "memory.usage_in_bytes"} {
		t.Run(file, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, file)
			require.NoError(t, os.WriteFile(path, []byte("1"), 0o600))
			n, err := notify.New(notify.Config{Dir: dir, Poll: 10 * time.Millisecond})
			require.NoError(t, err)
			require.NoError(t, n.Update([]int64{100}))
			ctx, stop := context.WithCancel(t.Context())
			reported, ended := make(chan bool, 10), make(chan error, 1)
			go func() { ended <- n.Run(ctx, func() { reported <- true }) }()
			tmp := path + ".new"
			require.NoError(t, os.WriteFile(tmp, fmt.Append(nil, 101), 0o600))
			require.NoError(t, os.Rename(tmp, path))
			select {
			case <-reported:
			case <-time.After(90 * time.Second):
				t.Error("no notification")
			}
			stop()
			assert.NoError(t, <-ended)
		})
	}
}
