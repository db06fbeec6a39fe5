package logrotate_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/logrotate"
)

// oneLog is a runtime of one container that runs.
type oneLog string

func (oneLog) Pods(context.Context) ([]*runtime.Pod, error) {
	return []*runtime.Pod{{Containers: []runtime.Container{{ID: "web", State: runtime.ContainerRunning}}}}, nil
}

func (l oneLog) LogPath(context.Context, string) (string, error) { return string(l), nil }

func (l oneLog) ReopenLog(context.Context, string) error { return os.WriteFile(string(l), nil, 0o640) }

func Example() {
	dir, err := os.MkdirTemp("", "logs")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "0.log")
	if err := os.WriteFile(path, []byte(strings.Repeat("a line\n", 200)), 0o640); err != nil {
		log.Fatal(err)
	}
	rotator, err := logrotate.New(logrotate.Config{Runtime: oneLog(path), MaxSize: 1 << 10})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rotator.Pass(context.Background())) // Run does this when it is time
	files, _ := os.ReadDir(dir)
	live, _ := os.Stat(path)
	fmt.Println(len(files), "files, of the live one", live.Size(), "bytes")
	// Output:
	// <nil>
	// 2 files, of the live one 0 bytes
}
