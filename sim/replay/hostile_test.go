package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/sim/replay"
)

// Frames with changed characters are an error or are replayed; see FuzzRun.
func TestChangedFramesAreReplayed(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, seed))
	original := recordedText(t)
	replayed := 0
	for range 60 {
		data := bytes.Clone(original)
		for range 1 + random.IntN(30) {
			i := random.IntN(len(data))
			if data[i] >= '0' && data[i] <= '9' {
				data[i] = '0' + byte(random.IntN(10))
			} else {
				data[i] = byte(32 + random.IntN(90))
			}
		}
		r, err := replay.Read(sequence(frames(data)))
		if err != nil {
			continue
		}
		replayed++
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)  // the agent may retry without end
		_, _ = replay.Run(ctx, r, replay.Options{Until: time.Minute}) // an error is allowed
		cancel()
		checkAndShrink(t, r)
	}
	require.Positive(t, replayed)
}

// recordedText returns the frames of a small recording as lines of JSON.
func recordedText(t testing.TB) []byte {
	dir := recordNode(t, nodeConfig{latency: 5 * time.Millisecond, seed: 1}, func(n node) {
		n.source.Set(pod("web", probed(container("main", "crash"))))
		time.Sleep(10 * time.Second)
	})
	var text bytes.Buffer
	files, err := record.Files(dir)
	require.NoError(t, err)
	for frame, err := range record.ReadFiles(files...) {
		require.NoError(t, err)
		require.NoError(t, json.NewEncoder(&text).Encode(frame))
	}
	return text.Bytes()
}

// frames returns the frames of the lines that are valid, at most 1000.
func frames(data []byte) (out []record.Frame) {
	for line := range bytes.Lines(data) {
		var frame record.Frame
		if json.Unmarshal(line, &frame) == nil && len(out) < 1000 {
			out = append(out, frame)
		}
	}
	return out
}

// checkAndShrink checks and shrinks a recording of any frames, and writes it as a test. Errors are allowed.
func checkAndShrink(t *testing.T, r *replay.Recording) {
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	opts := replay.Options{Until: 10 * time.Second, Settle: 10 * time.Second, Invariants: replay.InvariantNames()}
	small, err := replay.Shrink(ctx, r, replay.ShrinkOptions{Replay: opts, Replays: 8, Fails: func(replay.Result) bool { return true }})
	if small == nil {
		return
	}
	var text, data bytes.Buffer
	if small.AsTest(&text, replay.TestFile{}) == nil {
		again, err := replay.ReadJSON(strings.NewReader(framesOf(t, text.String())))
		require.NoError(t, err)
		require.NotNil(t, again)
	}
	if err == nil {
		require.NoError(t, small.Write(&data))
	}
}
