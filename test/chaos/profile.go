package chaos

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// profileLength is the time that a CPU profile covers.
const profileLength = time.Minute

// profile writes CPU profiles of the agent to dir, one after another, until the run ends. If dir is empty, it only sets
// the port of the kubelet API to any free one.
func (w *world) profile(dir string) error {
	if dir == "" {
		w.agent.args = append(w.agent.args, "--port=-1")
		return nil
	}
	ports, err := labenv.FreePorts(1)
	if err != nil {
		return err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", ports[0])
	w.agent.args = append(w.agent.args, "--address=127.0.0.1", fmt.Sprintf("--port=%d", ports[0]), "--anonymous-auth=true", "--authorization-mode=AlwaysAllow")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(w.ctx)
	var profiling sync.WaitGroup
	profiling.Go(func() {
		for n := 1; ctx.Err() == nil; {
			if err := fetchProfile(ctx, addr, filepath.Join(dir, fmt.Sprintf("cpu-%03d.pprof", n))); err == nil {
				n++
				continue
			}
			select { // the agent does not run
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	})
	w.Cleanup(func() { cancel(); profiling.Wait() })
	return nil
}

// fetchProfile requests a profile and writes it to a file.
func fetchProfile(ctx context.Context, addr, file string) error {
	ctx, cancel := context.WithTimeout(ctx, profileLength+30*time.Second)
	defer cancel()
	url := fmt.Sprintf("https://%s/debug/pprof/profile?seconds=%d", addr, int(profileLength.Seconds()))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true} // on loopback
	answer, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("profile: %s", answer.Status)
	}
	return os.WriteFile(file, data, 0o644)
}
