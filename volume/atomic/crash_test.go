package atomic_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	kpatomic "github.com/kubeparts/kubeparts/volume/atomic"
)

// generations returns the two payloads of the crash test: some names are in both,
// others in one only.
func generations() (before, after kpatomic.Payload) {
	file := func(content string) kpatomic.File {
		return kpatomic.File{Data: []byte(strings.Repeat(content, 3000)), Mode: 0o644}
	}
	before = kpatomic.Payload{"a": file("old"), "b": file("old"), "d/e/f": file("old"), "old": file("old")}
	after = kpatomic.Payload{"a": file("new"), "b": file("new"), "d/e/f": file("new"), "d/n": file("new"), "new": file("new")}
	return before, after
}

func contents(p kpatomic.Payload) map[string]string {
	m := map[string]string{}
	for name, f := range p {
		m[name] = string(f.Data)
	}
	return m
}

// TestMain also runs the child process that is killed during a write.
func TestMain(m *testing.M) {
	if dir := os.Getenv("ATOMIC_CRASH_DIR"); dir != "" {
		at, _ := strconv.Atoi(os.Getenv("ATOMIC_CRASH_AT"))
		os.Exit(crash(dir, at))
	}
	os.Exit(m.Run())
}

// crash writes the second generation, and kills this process before call number at.
func crash(dir string, at int) int {
	_, after := generations()
	calls := 0
	_, err := kpatomic.WriteSteps(dir, after, kpatomic.Options{}, func(call string) {
		if calls == at {
			fmt.Println(call)
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
			select {}
		}
		calls++
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// Whichever call is the last, a reader sees one complete generation, and the next
// writer completes the interrupted write.
func TestAWriterKilledAtAnyCallLeavesOneGeneration(t *testing.T) {
	needLinks(t)
	before, after := generations()
	var killed []string
	for at := 0; ; at++ {
		dir := t.TempDir()
		write(t, dir, before)
		reader := startReader(dir)
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), "ATOMIC_CRASH_DIR="+dir, "ATOMIC_CRASH_AT="+strconv.Itoa(at))
		out, err := child.Output()
		require.NoError(t, reader())
		last := string(bytes.TrimSpace(out))
		if err == nil {
			require.Equal(t, contents(after), tree(t, dir))
			break
		}
		require.NotContains(t, last, "atomic:")
		killed = append(killed, last)

		data, err := readAll(dir)
		require.NoError(t, err, "before %q", last)
		if data["a"] == string(before["a"].Data) {
			require.Equal(t, contents(before), data, "before %q", last)
		} else {
			require.Equal(t, contents(after), data, "before %q", last)
		}
		write(t, dir, after)
		require.Equal(t, contents(after), tree(t, dir), "before %q", last)
		require.Len(t, list(t, dir), 2+len([]string{"a", "b", "d", "new"}), "nothing is left over")
	}
	t.Logf("killed before each of %d calls: %s", len(killed), strings.Join(killed, ", "))
	assert.Greater(t, len(killed), 20)
}

// startReader reads all files, resolving "..data" once per pass, until stop is called,
// which returns an error if a mixed set was ever read.
func startReader(dir string) (stop func() error) {
	var ended atomic.Bool
	result := make(chan error)
	go func() {
		for !ended.Load() {
			data, err := readAll(dir)
			if err == nil {
				err = oneGeneration(data)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // removed under us: an old one
				result <- err
				return
			}
		}
		result <- nil
	}()
	return func() error {
		ended.Store(true)
		return <-result
	}
}

func oneGeneration(data map[string]string) error {
	which := data["a"][:3]
	for name, content := range data {
		if strings.Trim(content, which) != "" || len(content) != 9000 {
			return fmt.Errorf("a is %q, and %s is something else", which, name)
		}
	}
	return nil
}

// readAll reads the files consistently: "..data" is resolved once.
func readAll(dir string) (map[string]string, error) {
	current, err := kpatomic.Current(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(current)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	data := map[string]string{}
	err = fs.WalkDir(root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := root.ReadFile(p)
		data[p] = string(b)
		return err
	})
	if err == nil && data["a"] == "" {
		return nil, fs.ErrNotExist
	}
	return data, err
}

func TestReadersSeeOneGenerationWhileManyAreWritten(t *testing.T) {
	needLinks(t)
	before, after := generations()
	dir := t.TempDir()
	write(t, dir, before)
	reader := startReader(dir)
	for range 50 {
		write(t, dir, after)
		write(t, dir, before)
	}
	require.NoError(t, reader())
}
