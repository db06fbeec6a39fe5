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
	text := recordedText(f)
	f.Add(text)
	for from, to := range map[string]string{
		"RUNNING": "UNKNOWN", `"took":`: `"took":9`, `"metadata"`: `"m"`, `"id"`: `"i"`, `"at":`: `"at":7`,
	} {
		f.Add(bytes.ReplaceAll(text, []byte(from), []byte(to)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := replay.Read(sequence(frames(data)))
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)  // the agent may retry without end
		_, _ = replay.Run(ctx, r, replay.Options{Until: time.Minute}) // must not panic
		cancel()
		judgeAndShrink(t, r)
	})
}
