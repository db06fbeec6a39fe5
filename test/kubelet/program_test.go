package kubelet

import (
	"cmp"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// webServer is the name by which pods that are plain processes find a web server in their
// PATH: this test binary.
const webServer = "test-web-server"

// binaries is the directory of the built kubelet and the web server.
var binaries string

// parallel is the number of tests that run at the same time: they wait for programs more than they
// compute.
const parallel = "8"

func TestMain(m *testing.M) {
	// Before the flags are parsed, so that -test.parallel on the command line takes precedence.
	_ = flag.Set("test.parallel", parallel)
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	if filepath.Base(os.Args[0]) == webServer {
		return serveWeb(os.Args[1])
	}
	var err error
	if binaries, err = os.MkdirTemp("", "kubelet-test"); err == nil {
		defer os.RemoveAll(binaries)
		// Processes of pods that run as another user must find the web server.
		err = os.Chmod(binaries, 0o755)
	}
	if err == nil {
		err = linkWebServer()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func linkWebServer() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Symlink(self, filepath.Join(binaries, webServer)); err != nil {
		return err
	}
	return os.Setenv("PATH", binaries+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// serveWeb answers every request until a signal.
func serveWeb(addr string) int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	failed := make(chan error, 1)
	go func() {
		failed <- http.ListenAndServe(addr, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }))
	}()
	select {
	case err := <-failed:
		fmt.Fprintln(os.Stderr, err)
		return 1
	case <-signals:
		return 0
	}
}

// build builds the kubelet once; KUBEPARTS_KUBELET is the path of one that was built
// before.
var build = sync.OnceValues(func() (string, error) {
	path := cmp.Or(os.Getenv("KUBEPARTS_KUBELET"), filepath.Join(binaries, "kubelet"))
	if filepath.Dir(path) != binaries {
		return path, nil
	}
	out, err := exec.Command("go", slices.Concat([]string{"build", "-o", path}, raceFlags, []string{"github.com/kubeparts/kubeparts/examples/kubelet"})...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the kubelet: %w\n%s", err, out)
	}
	return path, nil
})

// program returns the path of the kubelet.
func program(t *testing.T) string {
	t.Helper()
	path, err := build()
	require.NoError(t, err)
	return path
}
