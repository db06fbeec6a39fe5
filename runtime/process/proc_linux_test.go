package process

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStatIsReadPastAnyCommandName(t *testing.T) {
	line := "7 (a) b (c) S 6 5 4 0 -1 0 0 0 0 0 11 12 13 14 20 0 1 0 99 1000 42 0 0"
	s, err := parseStat([]byte(line))
	require.NoError(t, err)
	assert.Equal(t, procStat{
		pid: 7, ppid: 6, session: 4, state: 'S', start: "99",
		user: 11, system: 12, childUser: 13, childSystem: 14, rssPages: 42,
	}, s)
	for _, bad := range []string{"", "7 a S 6", "7 (a) S 6 5 4", "x" + line, "7 (a) S 6 5 4 0 -1 0 0 0 0 0 x 12 13 14 20 0 1 0 99 1000 42"} {
		_, err := parseStat([]byte(bad))
		assert.Error(t, err, bad)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("7 (a) b (c) S 6 5 4 0 -1 0 0 0 0 0 11 12 13 14 20 0 1 0 99 1000 42 0 0"))
	f.Add([]byte(")("))
	f.Fuzz(func(t *testing.T, data []byte) { parseStat(data) })
}

func TestAProcessIsIdentifiedByItsStartTime(t *testing.T) {
	start, err := processStart(os.Getpid())
	require.NoError(t, err)
	assert.True(t, is(identity{PID: os.Getpid(), Start: start}))
	assert.False(t, is(identity{PID: os.Getpid(), Start: start + "0"}), "the PID was reused")
	assert.False(t, is(identity{PID: os.Getpid()}))
	assert.False(t, is(identity{PID: unknownPID, Start: start}))
	ok, err := signalProcess(identity{PID: os.Getpid(), Start: "other"}, 9)
	require.NoError(t, err)
	assert.False(t, ok, "another process is not signaled")
}

func TestUsageFollowsParentsNotSessions(t *testing.T) {
	all := map[int]procStat{
		1:  {pid: 1, user: 1000},
		10: {pid: 10, ppid: 1, user: 5, childUser: 100}, // supervisor
		11: {pid: 11, ppid: 10, user: 1, rssPages: 1, session: 11},
		12: {pid: 12, ppid: 11, system: 2, childSystem: 3, rssPages: 2, session: 12},
		20: {pid: 20, ppid: 1, user: 5},                  // another supervisor
		30: {pid: 30, ppid: 31}, 31: {pid: 31, ppid: 30}, // a circle that a pass can see
	}
	used := usageOf([]int{10, 20, 99}, all, 4096)
	assert.Equal(t, usage{cpu: 106 * 10 * time.Millisecond, rss: 3 * 4096, processes: 2}, used[10])
	assert.Equal(t, usage{}, used[20])
	assert.NotContains(t, used, 99)
}
