package procmem

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRunDoublesThePauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var at []time.Duration
		begun := time.Now()
		run(ctx, Config{Logger: slog.New(slog.DiscardHandler)}, func() (int64, error) {
			at = append(at, time.Since(begun))
			return 0, errors.New("failed") // is retried
		}, func(int) int { return 100 })
		var pauses []string
		for i, d := range at {
			if i > 0 {
				d -= at[i-1]
			}
			pauses = append(pauses, d.String())
		}
		assert.Equal(t, "30s 1m0s 2m0s 4m0s 8m0s 10m0s 10m0s 10m0s 10m0s", strings.Join(pauses, " "))
	})
}

func TestThePercentageIsSetOnceAtTheStart(t *testing.T) {
	for percent, want := range map[int][]int{0: {40}, 70: {70}, -1: nil} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			var set []int
			begun := time.Now()
			run(ctx, Config{GCPercent: percent}, func() (int64, error) { return 0, nil }, func(n int) int {
				assert.Zero(t, time.Since(begun))
				set = append(set, n)
				return 100
			})
			assert.Equal(t, want, set)
		})
	}
}

// entry returns an entry of smaps.
func entry(header, rss, anonymous string) string {
	return header + "\nSize: 8 kB\nRss: " + rss + " kB\nReferenced: 4 kB\nAnonymous: " + anonymous + " kB\nVmFlags: rd ex\n"
}

func TestReleasable(t *testing.T) {
	const text = "00400000-00402000 r-xp 00000000 fe:00 12 /bin/kubelet"
	one := []mapping{{start: 0x400000, end: 0x402000, resident: 8 << 10}}
	for name, c := range map[string]struct {
		smaps   string
		want    []mapping
		program string // default: /bin/kubelet
	}{
		"program":                  {entry(text, "8", "0"), one, ""},
		"replaced program":         {entry(text+" (deleted)", "8", "0"), one, "/bin/kubelet (deleted)"},
		"constants":                {entry(strings.Replace(text, "r-xp", "r--p", 1), "8", "0"), one, ""},
		"breakpoint or relocation": {entry(text, "8", "4"), nil, ""},
		"not resident":             {entry(text, "0", "0"), nil, ""},
		"writable":                 {entry(strings.Replace(text, "r-xp", "rw-p", 1), "8", "0"), nil, ""},
		"shared":                   {entry(strings.Replace(text, "r-xp", "r--s", 1), "8", "0"), nil, ""},
		"heap":                     {entry("c000000000-c000400000 r--p 00000000 00:00 0", "8", "0"), nil, ""},
		"kernel":                   {entry("7ff000-800000 r-xp 00000000 00:00 0 [vdso]", "8", "0"), nil, ""},
		"library":                  {entry("7ff000-800000 r-xp 00000000 fe:00 13 /lib/libc.so", "8", "0"), nil, ""},
		"no program":               {entry("7ff000-800000 r-xp 00000000 fe:00 0", "8", "0"), nil, " "},
		"two":                      {entry("7f0000-7f1000 rw-p 00000000 00:00 0", "8", "8") + entry(text, "8", "0"), one, ""},
		"cut off":                  {strings.SplitAfter(entry(text, "8", "0"), "Referenced")[0], nil, ""},
		"no number":                {entry(text, "8", "x"), nil, ""},
		"no size":                  {entry("00402000-00402000 r-xp 00000000 fe:00 12 /bin/kubelet", "8", "0"), nil, ""},
		"empty":                    {"", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := releasable(strings.NewReader(c.smaps), cmp.Or(c.program, "/bin/kubelet"))
			require.NoError(t, err)
			assert.Equal(t, c.want, found)
		})
	}
	_, err := releasable(strings.NewReader(strings.Repeat("x", 1<<20)), "/bin/kubelet")
	assert.Error(t, err, "a line of a megabyte")
}

func FuzzReleasable(f *testing.F) {
	f.Add(entry("00400000-00402000 r-xp 00000000 fe:00 12 /bin/kubelet", "8", "0"))
	f.Fuzz(func(t *testing.T, smaps string) {
		found, _ := releasable(strings.NewReader(smaps), "/bin/kubelet")
		for _, m := range found {
			if m.end <= m.start || m.resident <= 0 {
				t.Errorf("%+v", m)
			}
		}
	})
}
