package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	cri "k8s.io/cri-client/pkg"
)

// dirPrefix is followed by the process ID of the test that owns the directory;
// sweepDead goes by it.
const dirPrefix = "kubeparts-lab-"

// ContainerdConfig configures a containerd. The zero value is sufficient for nearly all
// tests.
type ContainerdConfig struct {
	// Binary is the daemon; its shim and ctr are in the same directory. Empty
	// means the one of KUBEPARTS_CONTAINERD, or else the one in PATH. Versions 1.6 and
	// later are supported, including 2.x.
	Binary string

	// Images are imported in addition to Busybox and Pause.
	Images []Image

	// Mirror is the URL of a registry that serves all images whose names begin with one of
	// these hosts, such as that of a [Registry]. 2.x only.
	Mirror      string
	MirrorHosts []string

	// RootMiB is the size of a separate file system for the daemon's root, which contains
	// images and writable layers, so that a test can fill it. Zero means the file system
	// of the machine.
	RootMiB int

	// Metrics makes the daemon serve its metrics at Daemon.Metrics, among them
	// grpc_server_started_total, the number of CRI calls by method.
	Metrics bool
}

// Containerd starts a containerd that belongs to this test, waits until its
// CRI reports runtime and network as ready, and imports the images. The test's cleanup
// removes all of it. If the machine lacks a requirement, the test is skipped or fails as
// with Need.
func Containerd(t testing.TB, cfg ContainerdConfig) *Daemon {
	t.Helper()
	Need(t, "containerd")
	if err := sweepDead(os.TempDir()); err != nil {
		t.Logf("lab: sweep after tests that were killed: %v", err)
	}
	d := &Daemon{t: t}
	// Registered first, so that it also cleans up after a failure of the following steps.
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", dirPrefix, os.Getpid()))
	d.must("make a directory", err)
	d.layout.dir = dir
	t.Cleanup(d.cleanup)
	if cfg.Metrics {
		port, err := freePort(net.IPv4(127, 0, 0, 1))
		d.must("find a port", err)
		d.layout.metrics = "127.0.0.1:" + port
		d.Metrics = "http://" + d.layout.metrics + "/v1/metrics"
	}
	d.must("prepare", d.prepare(cfg.Binary))
	d.must("name a mirror", d.layout.mirror(cfg.Mirror, cfg.MirrorHosts))
	if cfg.RootMiB > 0 {
		d.must("make a file system", smallDisk(d.layout.root(), cfg.RootMiB))
	}
	d.Start()
	for _, build := range []func() (Image, error){BusyboxImage, func() (Image, error) { return PauseImage(dir) }} {
		img, err := build()
		d.must("build an image", err)
		d.Import(img)
	}
	for _, img := range cfg.Images {
		d.Import(img)
	}
	return d
}

// smallDisk mounts a file system in memory on a new directory. The cleanup unmounts
// everything below the daemon's directory.
func smallDisk(dir string, mib int) error {
	if err := os.Mkdir(dir, 0o711); err != nil {
		return err
	}
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm,mode=711", mib), "kubeparts-lab", dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mount a tmpfs: %w: %s", err, out)
	}
	return nil
}

// Root is the directory where the daemon keeps images and writable layers.
func (d *Daemon) Root() string { return d.layout.root() }

// prepare prepares the first start.
func (d *Daemon) prepare(binary string) (err error) {
	if binary, err = containerdBinary(binary); err != nil {
		return err
	}
	d.child = child{
		name: "containerd", binary: binary, log: d.layout.logFile(),
		args: []string{"--config", d.layout.configFile(), "--root", d.layout.root(), "--state", d.layout.state(), "--address", d.layout.socket()},
		// The shim is searched in PATH: the daemon's own must be first.
		env: []string{"PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH")},
	}
	if d.Version, err = versionOf(binary); err != nil {
		return err
	}
	if d.layout.cniBin, err = cniDir(); err != nil {
		return err
	}
	if d.layout.bridge, d.layout.subnet, err = takeBridge(d.layout.bridgeFile()); err != nil {
		return err
	}
	d.Endpoint = "unix://" + d.layout.socket()
	config, err := d.layout.config(d.Version)
	if err != nil {
		return err
	}
	network, err := d.layout.conflist()
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(d.layout.configFile(), []byte(config), 0o600),
		os.Mkdir(d.layout.cniConf(), 0o700),
		os.WriteFile(filepath.Join(d.layout.cniConf(), "10-lab.conflist"), network, 0o600),
	)
}

// versionOf returns the version of a containerd binary, which prints its module path, its
// version and possibly a commit: "1.6.20~ds1", "v2.4.2", "2.4.2+unknown".
func versionOf(binary string) (string, error) {
	out, err := exec.Command(binary, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", binary, err)
	}
	return parseVersion(string(out))
}

func parseVersion(line string) (string, error) {
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return "", fmt.Errorf("lab: containerd's version is not in %q", line)
	}
	version := strings.TrimPrefix(fields[2], "v")
	if end := strings.IndexAny(version, "~+-"); end >= 0 {
		version = version[:end]
	}
	return version, nil
}

// bridges is the number of subnets of 1,021 addresses in 10.231.0.0/16. A bridge has at most 1,023 links.
const bridges = 64

// takeBridge creates a network link with an unused number, which determines an unused
// subnet: the kernel rejects a second link with the same name. The name is written to
// note for the cleanup.
func takeBridge(note string) (name, subnet string, err error) {
	for i := range bridges {
		n := (os.Getpid() + i) % bridges
		name := fmt.Sprintf("kplab%d", n)
		out, err := exec.Command("ip", "link", "add", name, "type", "bridge").CombinedOutput()
		if err == nil {
			return name, fmt.Sprintf("10.231.%d.0/22", 4*n), os.WriteFile(note, []byte(name), 0o600)
		}
		if _, taken := net.InterfaceByName(name); taken != nil {
			return "", "", fmt.Errorf("ip link add %s: %w: %s", name, err, out)
		}
	}
	return "", "", fmt.Errorf("all %d bridges of the lab exist; delete links kplab0 to kplab%d that no test uses", bridges, bridges-1)
}

// Import imports an image, and blocks until the CRI lists it.
func (d *Daemon) Import(img Image) {
	d.t.Helper()
	d.must("import "+img.Ref, d.importImage(img))
}

func (d *Daemon) importImage(img Image) error {
	f, err := os.CreateTemp(d.layout.dir, "image-*.tar")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(img.WriteArchive(f), f.Close()); err != nil {
		return err
	}
	ctr := filepath.Join(filepath.Dir(d.child.binary), "ctr")
	out, err := exec.Command(ctr, "-a", d.layout.socket(), "-n", "k8s.io", "images", "import", f.Name()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s images import: %w: %s", ctr, err, out)
	}
	// The CRI plugin gets it by an event.
	return d.await("image "+img.Ref, func(ctx context.Context) error { return known(ctx, d.Endpoint, img.Ref) })
}

// Images returns the names of the images that the daemon has.
func (d *Daemon) Images(ctx context.Context) (names []string, err error) {
	images, err := cri.NewRemoteImageServiceBuilder().WithEndpoint(d.Endpoint).WithConnectionTimeout(Limit(90 * time.Second)).Build(ctx)
	if err != nil {
		return nil, err
	}
	defer images.Close(ctx)
	list, err := images.ListImages(ctx, nil)
	for _, image := range list {
		names = append(names, image.RepoTags...)
	}
	return names, err
}

func known(ctx context.Context, endpoint, ref string) error {
	images, err := cri.NewRemoteImageServiceBuilder().WithEndpoint(endpoint).WithConnectionTimeout(Limit(90 * time.Second)).Build(ctx)
	if err != nil {
		return err
	}
	defer images.Close(ctx)
	status, err := images.ImageStatus(ctx, &runtimeapi.ImageSpec{Image: ref}, false)
	if err != nil {
		return err
	}
	if status.GetImage() == nil {
		return errors.New("the CRI does not list it")
	}
	return nil
}
