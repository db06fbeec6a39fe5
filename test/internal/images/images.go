// Package images builds the images of Kubernetes' suites of tests, because no registry can be
// reached: from busybox, the programs of Kubernetes' test/images, and a few programs of this
// machine, according to the Dockerfiles there.
package images

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// Host is the registry of the suites' images.
const Host = "registry.k8s.io"

// Programs that .ci/run conformance-images builds.
const (
	Agnhost        = "agnhost"
	NoNewPrivs     = "nonewprivs"
	DevicePlugin   = "sample-device-plugin"
	HostPathPlugin = "hostpathplugin"
)

// A Maker builds images by the last part of their names. The images of nginx and of kittens are
// busybox: the tests need a server and two files of them. Those of the tests of DNS have the same
// dig and getent, of this machine's C library.
type Maker struct {
	Tools string // directory of the programs of test/images
	Dir   string // for temporary files
}

// shell is that of busybox, whose messages some tests expect, or bash if a variable has a name
// such as data-1, which Debian's busybox does not pass on.
const shell = `#!/bin/bash
while IFS= read -r -d '' variable; do
	[[ ${variable%%=*} =~ ^[A-Za-z_][A-Za-z0-9_]*$ ]] || exec -a "$0" /bin/bash "$@"
done </proc/self/environ
exec -a "$0" /bin/busybox "$@"
`

// nmeter prints the time as busybox' applet does for -d0 %3t, with milliseconds; Debian's busybox
// has no such applet.
const nmeter = `#!/bin/bash
now=$EPOCHREALTIME
printf '%(%T)T.%.3s\n' "${now%.*}" "${now#*.}"
`

// path is the PATH of the suite's base images.
const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func (m Maker) make(name string) (img lab.Image, known bool, err error) {
	if name == "pause" {
		img, err = lab.PauseImage(m.Dir)
		return img, true, err
	}
	if img, err = lab.BusyboxImage(); err != nil {
		return img, false, err
	}
	img.Env, img.Cmd = []string{path}, []string{"sh"}
	remove(&img, "bin/sh", "bin/bash")
	if err := addProgram(&img, "bin/bash", "bash"); err != nil {
		return img, false, err
	}
	add(&img, lab.File{Path: "bin/sh", Mode: 0o755, Data: []byte(shell)}, lab.File{Path: "bin/nmeter", Mode: 0o755, Data: []byte(nmeter)})
	switch name {
	case "busybox":
	case "glibc-dns-testing":
		err = addResolvers(&img)
	case "nginx":
		img.Cmd = []string{"httpd", "-f", "-p", "80"}
	case "kitten":
		img.Cmd = []string{"test-webserver"}
		add(&img,
			lab.File{Path: "data.json", Mode: 0o644, Data: []byte(`{"image": "kitten.jpg"}`)},
			lab.File{Path: "etc/os-release", Mode: 0o644, Data: []byte("NAME=\"busybox in place of Alpine Linux\"\n")})
	case "nonroot":
		img.User = "1234"
	case "nonewprivs":
		var program []byte
		program, err = os.ReadFile(filepath.Join(m.Tools, NoNewPrivs))
		img.Cmd = []string{"nnp"}
		add(&img, lab.File{Path: "usr/local/bin/nnp", Mode: 0o6755, Data: program})
	case DevicePlugin:
		var program []byte
		program, err = os.ReadFile(filepath.Join(m.Tools, DevicePlugin))
		img.Entrypoint, img.Cmd = []string{"/sampledeviceplugin", "-alsologtostderr"}, nil
		add(&img, lab.File{Path: "sampledeviceplugin", Mode: 0o755, Data: program})
	case HostPathPlugin: // its proxy only
		var program []byte
		program, err = os.ReadFile(filepath.Join(m.Tools, HostPathPlugin))
		add(&img, lab.File{Path: "hostpathplugin", Mode: 0o755, Data: program})
	case "agnhost":
		err = m.agnhost(&img)
	default:
		return img, false, nil
	}
	return img, true, err
}

// agnhost adds the program of that name, curl, netcat, and a registry with one image.
func (m Maker) agnhost(img *lab.Image) error {
	program, err := os.ReadFile(filepath.Join(m.Tools, Agnhost))
	if err != nil {
		return err
	}
	img.Entrypoint, img.Cmd = []string{"/agnhost"}, []string{"pause"}
	// Busybox' nc does not support UDP, and its shell prefers its own nc.
	remove(img, "bin/sh", "bin/nc", "etc/passwd", "etc/group")
	add(img,
		lab.File{Path: "agnhost", Mode: 0o755, Data: program},
		lab.File{Path: "agnhost-2", Mode: 0o777, Link: "agnhost"},
		lab.File{Path: "bin/sh", Mode: 0o777, Link: "bash"},
		lab.File{Path: "uploads/", Mode: 0o755},
		// A test expects the groups of a user of the image.
		lab.File{Path: "etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\nuser-defined-in-image:x:1000:1000::/home:/bin/sh\n")},
		lab.File{Path: "etc/group", Mode: 0o644, Data: []byte("root:x:0:\nnogroup:x:65534:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n")},
	)
	for _, name := range []string{"localhost.crt", "localhost.key"} {
		data, err := os.ReadFile(filepath.Join(m.Tools, name))
		if err != nil {
			return err
		}
		add(img, lab.File{Path: name, Mode: 0o644, Data: data})
	}
	for _, p := range []struct{ to, name string }{{"usr/bin/curl", "curl"}, {"usr/bin/nc", "nc.openbsd"}} {
		if err := addProgram(img, p.to, p.name); err != nil {
			return err
		}
	}
	if err := addResolvers(img); err != nil {
		return err
	}
	served, err := lab.PauseImage(m.Dir)
	if err != nil {
		return err
	}
	served.Env = []string{"SERVED=1"} // another image than that of sandboxes, which tests would remove with it
	return addServed(img, served, "pause", "testing")
}

// addResolvers adds the programs with which tests resolve names.
func addResolvers(img *lab.Image) error {
	for _, name := range []string{"dig", "getent"} {
		if err := addProgram(img, "usr/bin/"+name, name); err != nil {
			return err
		}
	}
	return nil
}

// addServed adds an image to those that agnhost's registry serves.
func addServed(img *lab.Image, served lab.Image, name, tag string) error {
	m, err := served.Manifest()
	if err != nil {
		return err
	}
	dir := "var/registry/" + name + "/"
	file := func(kind string, data []byte) lab.File {
		hash := digest(data)
		return lab.File{Path: dir + kind + "/sha256/" + hash[:2] + "/" + hash + "/data", Mode: 0o644, Data: data}
	}
	add(img,
		lab.File{Path: dir + "manifests/" + tag, Mode: 0o644, Data: []byte("sha256:" + digest(m.Manifest))},
		file("manifests", m.Manifest), file("blobs", m.Config), file("blobs", m.Layer))
	return nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

var library = regexp.MustCompile(`(?m)^\s*(?:\S+ => )?(/\S+) \(0x`)

// addProgram adds a program of this machine with its shared libraries.
func addProgram(img *lab.Image, to, name string) error {
	program, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("image %s: %w; apt-get install bash curl netcat-openbsd bind9-dnsutils", img.Ref, err)
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	add(img, lab.File{Path: to, Mode: 0o755, Data: data})
	linked, err := exec.Command("ldd", program).Output()
	if err != nil {
		return fmt.Errorf("ldd %s: %w", program, err)
	}
	for _, match := range library.FindAllStringSubmatch(string(linked), -1) {
		data, err := os.ReadFile(match[1])
		if err != nil {
			return err
		}
		add(img, lab.File{Path: strings.TrimPrefix(match[1], "/"), Mode: 0o755, Data: data})
	}
	return nil
}

// remove removes files.
func remove(img *lab.Image, paths ...string) {
	img.Files = slices.DeleteFunc(img.Files, func(f lab.File) bool { return slices.Contains(paths, f.Path) })
}

// add adds files and their directories.
func add(img *lab.Image, files ...lab.File) {
	there := map[string]bool{}
	for _, f := range img.Files {
		there[f.Path] = true
	}
	for _, f := range files {
		for at := range f.Path {
			if dir := f.Path[:at+1]; f.Path[at] == '/' && !there[dir] && dir != f.Path {
				img.Files = append(img.Files, lab.File{Path: dir, Mode: 0o755})
				there[dir] = true
			}
		}
		if !there[f.Path] {
			img.Files = append(img.Files, f)
			there[f.Path] = true
		}
	}
}

// inManifests finds the image that is only in a manifest within a suite, not in its list.
var inManifests = regexp.MustCompile(`registry\.k8s\.io/e2e-test-images/` + DevicePlugin + `:[0-9.]*[0-9]`)

// Serve builds the images of a suite and adds them to a registry.
func (m Maker) Serve(registry *lab.Registry, suite string) error {
	for img, err := range m.Images(suite) {
		if err != nil {
			return err
		}
		registry.Push(img, strings.TrimPrefix(img.Ref, Host+"/"))
	}
	return nil
}

// Images builds the images of a suite that are known. The program of the suite lists their names.
func (m Maker) Images(suite string) iter.Seq2[lab.Image, error] {
	return func(yield func(lab.Image, error) bool) {
		refs, err := list(suite)
		if err != nil {
			yield(lab.Image{}, err)
			return
		}
		for _, ref := range refs {
			base, _, _ := strings.Cut(ref[strings.LastIndex(ref, "/")+1:], ":")
			img, known, err := m.make(base)
			if err != nil {
				err = fmt.Errorf("build image %s: %w", ref, err)
			}
			img.Ref = ref
			// Versions of an image must differ, because tests update from one to another.
			add(&img, lab.File{Path: "etc/name", Mode: 0o644, Data: []byte(ref)})
			if (known || err != nil) && (!yield(img, err) || err != nil) {
				return
			}
		}
	}
}

// list returns the names of the images of a suite that are in Host.
func list(suite string) ([]string, error) {
	var stderr bytes.Buffer
	cmd := exec.Command(suite, "--list-images")
	cmd.Stderr = &stderr
	names, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the images of the suite: %w: %s", err, &stderr)
	}
	program, err := os.ReadFile(suite)
	if err != nil {
		return nil, err
	}
	refs := strings.Fields(string(names))
	for _, ref := range inManifests.FindAll(program, -1) {
		refs = append(refs, string(ref))
	}
	refs = slices.DeleteFunc(refs, func(ref string) bool { return !strings.HasPrefix(ref, Host+"/") })
	slices.Sort(refs)
	return slices.Compact(refs), nil
}
