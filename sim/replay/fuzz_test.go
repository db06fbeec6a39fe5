package replay_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/sim/replay"
)

// FuzzRun replays recordings whose frames, in JSON, were changed.
func FuzzRun(f *testing.F) {
	dir := recordNode(f, nodeConfig{latency: 5 * time.Millisecond, seed: 1}, func(n node) {
		n.source.Set(pod("web", probed(container("main", "crash"))))
		time.Sleep(10 * time.Second)
	})
	var text bytes.Buffer
	files, err := record.Files(dir)
	require.NoError(f, err)
	for frame, err := range record.ReadFiles(files...) {
		require.NoError(f, err)
		require.NoError(f, json.NewEncoder(&text).Encode(frame))
	}
	f.Add(text.Bytes())
	f.Add(bytes.ReplaceAll(text.Bytes(), []byte("RUNNING"), []byte("UNKNOWN")))
	f.Add(bytes.ReplaceAll(text.Bytes(), []byte(`"took":`), []byte(`"took":9`)))
	f.Add(bytes.ReplaceAll(text.Bytes(), []byte(`"metadata"`), []byte(`"m"`)))
	f.Add(bytes.ReplaceAll(text.Bytes(), []byte(`"id"`), []byte(`"i"`)))
	f.Add(bytes.ReplaceAll(text.Bytes(), []byte(`"at":`), []byte(`"at":7`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		var frames []record.Frame
		for line := range bytes.Lines(data) {
			var frame record.Frame
			if json.Unmarshal(line, &frame) == nil && len(frames) < 1000 {
				frames = append(frames, frame)
			}
		}
		r, err := replay.Read(sequence(frames))
		if err != nil {
			return
		}
		_, _ = replay.Run(t.Context(), r, replay.Options{Until: time.Minute}) // must not panic
	})
}
