package record

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A process that is suspended has neither beats nor notifications; here the lock is held meanwhile.
func TestAPauseOfTheProcessIsRecorded(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r, err := New(Config{Dir: dir})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		time.Sleep(time.Hour) // idle is no pause
		r.Draw("before", 1)
		time.Sleep(1500 * time.Millisecond) // a beat after half of it
		r.mu.Lock()
		r.ran -= 10 * time.Second // as if that beat and the notification were 10 seconds earlier
		r.mu.Unlock()
		r.Draw("after", 1)
		time.Sleep(time.Hour)
		cancel()
		require.NoError(t, <-ended)
	})
	files, err := Files(dir)
	require.NoError(t, err)
	var lines []string
	for f, err := range ReadFiles(files...) {
		require.NoError(t, err)
		lines = append(lines, f.String())
	}
	require.Len(t, lines, 5)
	assert.Equal(t, []string{
		"3600.000000s draw: before: 1",
		"3601.500000s pause: the process did not run for 10.5s",
		"3601.500000s draw: after: 1",
	}, lines[1:4])
}
