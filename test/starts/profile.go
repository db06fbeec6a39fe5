//go:build unix

package starts

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// profileSeconds is the length of the CPU profile of a phase, from its begin.
const profileSeconds = 10

// profile writes profiles of a node to dir while a phase runs: cpu of its first seconds, and allocs since the
// start of the node. The returned function waits for them. It does nothing if dir is empty.
func profile(ctx context.Context, dir, subject, phase string) (wait func() error) {
	if dir == "" || subject == bareName {
		return func() error { return nil }
	}
	fetched := make(chan error, 1)
	name := func(kind string) string {
		return filepath.Join(dir, strings.ReplaceAll(subject+"-"+phase, " ", "-")+"-"+kind+".pprof")
	}
	go func() { fetched <- fetch(ctx, fmt.Sprintf("profile?seconds=%d", profileSeconds), name("cpu")) }()
	return func() error { return errors.Join(<-fetched, fetch(ctx, "allocs", name("allocs"))) }
}

// fetch writes a profile of the node's server to a file.
func fetch(ctx context.Context, what, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://127.0.0.1:10250/debug/pprof/"+what, nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // its certificate is its own
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", req.URL, resp.Status, data)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}
