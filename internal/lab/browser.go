package lab

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A Browser is a headless Chromium. The zero value renders pages as on a desktop, in
// light colors.
type Browser struct {
	Width, Height int  // of the window; zero: 1280 by 1600
	Dark          bool // the page is rendered with prefers-color-scheme: dark

	// After is the virtual time for which the scripts of a page run before it is
	// rendered; it takes no real time. Zero means 1 second.
	After time.Duration
}

// The timeout of a browser for one page on a busy machine, and the number of tries:
// sometimes a browser does not start.
const (
	browserPatience = 90 * time.Second
	browserTries    = 3
)

// DOM returns the document of a page after its scripts have run, as HTML.
func (b Browser) DOM(t testing.TB, url string) string {
	t.Helper()
	return string(b.run(t, func(string) string { return "--dump-dom" }, url, func(string, []byte) error { return nil }))
}

// Screenshot returns an image of the part of the page that fits in the window.
func (b Browser) Screenshot(t testing.TB, url string) (picture image.Image) {
	t.Helper()
	b.run(t, func(dir string) string { return "--screenshot=" + filepath.Join(dir, "page.png") }, url, func(dir string, _ []byte) error {
		file, err := os.ReadFile(filepath.Join(dir, "page.png"))
		if err != nil {
			return err
		}
		picture, err = png.Decode(bytes.NewReader(file))
		return err
	})
	return picture
}

// run loads a page in a browser and returns its output.
func (b Browser) run(t testing.TB, what func(dir string) string, url string, done func(dir string, out []byte) error) []byte {
	t.Helper()
	Need(t, "chromium")
	for try := 1; ; try++ {
		out, err := b.once(t.Context(), what, url, done)
		if err == nil {
			return out
		}
		if try == browserTries {
			t.Fatalf("lab: chromium and %s: %v", url, err)
		}
		t.Logf("lab: chromium is started again: %v", err)
	}
}

func (b Browser) once(ctx context.Context, what func(dir string) string, url string, done func(dir string, out []byte) error) ([]byte, error) {
	// Not t.TempDir, whose cleanup fails if terminating processes of the browser still
	// write to the directory.
	dir, err := os.MkdirTemp("", "browser")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(ctx, browserPatience)
	defer cancel()
	width, height, after := b.Width, b.Height, b.After
	if width == 0 {
		width, height = 1280, 1600
	}
	if after == 0 {
		after = time.Second
	}
	args := []string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--no-proxy-server", "--hide-scrollbars",
		"--user-data-dir=" + dir, fmt.Sprintf("--window-size=%d,%d", width, height),
		fmt.Sprintf("--virtual-time-budget=%d", after.Milliseconds()), what(dir),
	}
	if b.Dark {
		args = append(args, "--force-dark-mode", "--blink-settings=preferredColorScheme=0")
	}
	cmd := exec.CommandContext(ctx, "chromium", append(args, url)...)
	cmd.WaitDelay = 5 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		err = done(dir, out)
	}
	if err != nil {
		printed := stderr.Bytes()
		return nil, fmt.Errorf("%w: %s", err, printed[max(0, len(printed)-500):])
	}
	return out, nil
}
