package record_test

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/sim/record"
)

// newRecording returns the bytes of a file with some draws and a pod.
func newRecording(t testing.TB) []byte {
	dir := t.TempDir()
	files := recorded(t, record.Config{Dir: dir, Node: "edge-1", Versions: map[string]string{"agent": "v1"}}, func(r *record.Recorder) {
		for i := range 5 {
			r.Draw(fmt.Sprint("draw-", i), float64(i))
		}
		source := new(podsource.Memory)
		source.Set(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u"}})
		deliver(t, r.Source("file", source))
	})
	require.Len(t, files, 1)
	data, err := os.ReadFile(files[0])
	require.NoError(t, err)
	return data
}

// frames returns the frames of a file, and the error after them.
func frames(data []byte) (all []record.Frame, err error) {
	for f, err := range record.Read(bytes.NewReader(data)) {
		if err != nil {
			return all, err
		}
		all = append(all, f)
	}
	return all, nil
}

// offsets returns the offset of each frame and that of the end.
func offsets(data []byte) []int {
	at := []int{bytes.IndexByte(data, '\n') + 1}
	for at[len(at)-1] < len(data) {
		last := at[len(at)-1]
		at = append(at, last+12+int(binary.LittleEndian.Uint32(data[last:])))
	}
	return at
}

func TestARecordingIsReadAsItWasWritten(t *testing.T) {
	all, err := frames(newRecording(t))
	require.NoError(t, err)
	require.Len(t, all, 8)
	assert.Equal(t, "edge-1", all[0].Header.Node)
	assert.Equal(t, 1, all[0].Header.File)
	assert.Equal(t, map[string]string{"agent": "v1"}, all[0].Header.Versions)
	assert.Equal(t, &record.Draw{Name: "draw-4", Value: 4}, all[5].Draw)
	assert.Equal(t, "web", all[6].Pods.Changed[0].Name)
	assert.False(t, all[7].End.Rotated)
	for i := range all[1:] {
		assert.GreaterOrEqual(t, all[i+1].At, all[i].At)
	}
}

func TestAFileIsReadableUpToEachCut(t *testing.T) {
	data := newRecording(t)
	whole, err := frames(data)
	require.NoError(t, err)
	at := offsets(data)
	for cut := range data {
		got, err := frames(data[:cut])
		var damage *record.DamageError
		require.ErrorAs(t, err, &damage, "cut at %d", cut)
		require.ErrorIs(t, err, record.ErrTruncated, "cut at %d", cut)
		complete := 0
		for complete+1 < len(at) && at[complete+1] <= cut {
			complete++
		}
		require.Equal(t, whole[:complete], append([]record.Frame{}, got...), "cut at %d", cut)
		require.Equal(t, complete, damage.Frame, "cut at %d", cut)
	}
}

func TestEachFlippedBitIsDetected(t *testing.T) {
	data := newRecording(t)
	whole, err := frames(data)
	require.NoError(t, err)
	at := offsets(data)
	for i := range data {
		for bit := range 8 {
			damaged := bytes.Clone(data)
			damaged[i] ^= 1 << bit
			got, err := frames(damaged)
			var damage *record.DamageError
			require.ErrorAs(t, err, &damage, "bit %d of byte %d", bit, i)
			frame := 0
			for at[frame+1] <= i {
				frame++
			}
			require.Equal(t, whole[:frame], append([]record.Frame{}, got...), "bit %d of byte %d", bit, i)
			if i >= at[0] {
				require.EqualValues(t, at[frame], damage.Offset, "bit %d of byte %d: %v", bit, i, err)
			}
		}
	}
}

func TestFramesThatAreMissingOrRepeatedAreDetected(t *testing.T) {
	data := newRecording(t)
	at := offsets(data)
	for name, damaged := range map[string][]byte{
		"no header":          append(bytes.Clone(data[:at[0]]), data[at[1]:]...),
		"two headers":        append(bytes.Clone(data[:at[1]]), data[at[0]:]...),
		"data after the end": append(bytes.Clone(data), data[at[0]:]...),
		"a missing frame":    append(bytes.Clone(data[:at[2]]), data[at[3]:]...),
	} {
		_, err := frames(damaged)
		assert.ErrorIs(t, err, record.ErrCorrupt, name)
	}
}

func TestAFileThatIsNotARecording(t *testing.T) {
	_, err := frames([]byte("kubeparts recording 2\n"))
	assert.EqualError(t, err, `frame 0 at offset 0: corrupt: the file does not begin with "kubeparts recording 1\n"`)
	_, err = frames(nil)
	assert.ErrorIs(t, err, record.ErrTruncated)
	for _, err := range record.ReadFiles("none.kprec") {
		assert.ErrorIs(t, err, os.ErrNotExist)
	}
	broken := errors.New("broken")
	for _, err := range record.Read(brokenReader{broken}) {
		assert.ErrorIs(t, err, broken)
	}
}

type brokenReader struct{ err error }

func (r brokenReader) Read([]byte) (int, error) { return 0, r.err }

// Recordings with valid checksums and random changes, which a hostile writer could make.
func TestHostileRecordings(t *testing.T) {
	data := newRecording(t)
	at := offsets(data)
	random := seedrun.Rand(t)
	for range 2000 {
		damaged := bytes.Clone(data)
		frame := random.IntN(len(at) - 1)
		b := damaged[at[frame]:at[frame+1]]
		for range 1 + random.IntN(3) {
			b[12+random.IntN(len(b)-12)] ^= byte(1 << random.IntN(8))
		}
		sign(b)
		readAny(damaged)
	}
}

// The text of a frame cannot be larger than its prefix announces, nor than the limit.
func TestABombIsRejected(t *testing.T) {
	var compressed bytes.Buffer
	w, err := flate.NewWriter(&compressed, flate.BestCompression)
	require.NoError(t, err)
	_, err = w.Write(bytes.Repeat([]byte(" "), 64<<20))
	require.NoError(t, err)
	require.NoError(t, w.Flush())
	for _, size := range []uint32{10, 16 << 20, 16<<20 + 1, 1 << 31} {
		b := append(make([]byte, 12), compressed.Bytes()...)
		binary.LittleEndian.PutUint32(b, uint32(compressed.Len()))
		binary.LittleEndian.PutUint32(b[4:], size)
		sign(b)
		_, err := frames(append([]byte("kubeparts recording 1\n"), b...))
		assert.ErrorIs(t, err, record.ErrCorrupt, size)
	}
}

// Empty objects, which need a thousand times the memory of their text, are counted before they are decoded.
func TestAFrameOfManyObjectsIsRejected(t *testing.T) {
	text := `{"at":0,"pods":{"source":"a","changed":[{"spec":{"containers":[{}` + strings.Repeat(",{}", 1<<20) + `]}}]}}`
	var compressed bytes.Buffer
	w, err := flate.NewWriter(&compressed, flate.BestCompression)
	require.NoError(t, err)
	_, err = w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Flush())
	b := append(make([]byte, 12), compressed.Bytes()...)
	binary.LittleEndian.PutUint32(b, uint32(compressed.Len()))
	binary.LittleEndian.PutUint32(b[4:], uint32(len(text)))
	sign(b)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = frames(append([]byte("kubeparts recording 1\n"), b...))
	runtime.ReadMemStats(&after)
	assert.ErrorContains(t, err, "a frame of ")
	assert.ErrorIs(t, err, record.ErrCorrupt)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20))
}

// sign sets the checksum of a frame.
func sign(b []byte) {
	table := crc32.MakeTable(crc32.Castagnoli)
	binary.LittleEndian.PutUint32(b[8:], crc32.Update(crc32.Checksum(b[:8], table), table, b[12:]))
}

// readAny reads and prints any input.
func readAny(data []byte) {
	for frame, err := range record.Read(bytes.NewReader(data)) {
		if err == nil {
			_ = frame.String()
		}
	}
}

func FuzzRead(f *testing.F) {
	data := newRecording(f)
	f.Add(data)
	for _, at := range offsets(data) {
		f.Add(data[:at])
	}
	f.Fuzz(func(_ *testing.T, data []byte) { readAny(data) })
}
