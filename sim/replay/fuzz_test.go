package replay_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/kubeparts/kubeparts/sim/replay"
)

// FuzzRun replays recordings whose frames, in JSON, were changed.
func FuzzRun(f *testing.F) {
	addChanged(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := replay.Read(sequence(frames(data)))
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)  // the agent may retry without end
		_, _ = replay.Run(ctx, r, replay.Options{Until: time.Minute}) // must not panic
		cancel()
	})
}

// FuzzShrink checks and shrinks such recordings, and writes them as tests.
func FuzzShrink(f *testing.F) {
	addChanged(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := replay.Read(sequence(frames(data))); err == nil {
			checkAndShrink(t, r) // must not panic
		}
	})
}

// addChanged adds a recording, and changed ones.
func addChanged(f *testing.F) {
	text := recordedText(f)
	f.Add(text)
	for from, to := range map[string]string{
		"RUNNING": "UNKNOWN", `"took":`: `"took":9`, `"metadata"`: `"m"`, `"id"`: `"i"`, `"at":`: `"at":7`,
	} {
		f.Add(bytes.ReplaceAll(text, []byte(from), []byte(to)))
	}
}
