package lab

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// The images that every daemon of the lab has. No registry serves them with these names;
// see [Registry].
const (
	Busybox = "kubeparts.test/busybox:1"
	Pause   = "kubeparts.test/pause:1"
)

// An Image is a container image that a test defines completely.
type Image struct {
	// Ref is its full name with a tag: "kubeparts.test/web:1".
	Ref string

	// Files are the image's only layer, in this order; a directory must precede its
	// contents.
	Files []File

	// Entrypoint, Cmd, Env and User are the image's defaults; all may be empty.
	Entrypoint []string
	Cmd        []string
	Env        []string
	User       string
}

// A File is a directory where the path ends in a slash, a symbolic link where
// Link is set, and otherwise a file with the content Data. Owner is root.
type File struct {
	Path string // relative to the image's root: "bin/sh"
	Mode int64  // permission bits
	Link string
	Data []byte
}

// WriteArchive writes img as a docker archive, which `ctr images import` and
// `docker load` read. Equal images give equal bytes.
func (img Image) WriteArchive(w io.Writer) error {
	config, layer, err := img.blobs()
	if err != nil {
		return err
	}
	configName := digest(config) + ".json"
	manifest, err := json.Marshal([]object{{
		"Config":   configName,
		"RepoTags": []string{img.Ref},
		"Layers":   []string{"layer.tar"},
	}})
	if err != nil {
		return fmt.Errorf("lab: image %s: %w", img.Ref, err)
	}
	return writeTar(w, []File{
		{Path: configName, Mode: 0o644, Data: config},
		{Path: "layer.tar", Mode: 0o644, Data: layer},
		{Path: "manifest.json", Mode: 0o644, Data: manifest},
	})
}

// A Manifest is an image in the format of a registry. The manifest refers to config and
// layer by their digests.
type Manifest struct {
	Manifest, Config, Layer []byte
}

// ManifestType is the media type of a [Manifest].
const ManifestType = "application/vnd.docker.distribution.manifest.v2+json"

// Manifest returns the image in the format of a registry.
func (img Image) Manifest() (m Manifest, err error) {
	if m.Config, m.Layer, err = img.blobs(); err != nil {
		return m, err
	}
	type descriptor struct {
		MediaType string `json:"mediaType"`
		Size      int    `json:"size"`
		Digest    string `json:"digest"`
	}
	about := func(mediaType string, data []byte) descriptor {
		return descriptor{"application/vnd.docker." + mediaType, len(data), "sha256:" + digest(data)}
	}
	m.Manifest, err = json.Marshal(map[string]any{
		"schemaVersion": 2,
		"mediaType":     ManifestType,
		"config":        about("container.image.v1+json", m.Config),
		"layers":        []descriptor{about("image.rootfs.diff.tar", m.Layer)},
	})
	return m, err
}

// blobs returns the config and the layer of the image.
func (img Image) blobs() (config, layer []byte, err error) {
	if layer, err = img.layer(); err != nil {
		return nil, nil, err
	}
	config, err = json.Marshal(object{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       object{"Entrypoint": img.Entrypoint, "Cmd": img.Cmd, "Env": img.Env, "User": img.User},
		"rootfs":       object{"type": "layers", "diff_ids": []string{"sha256:" + digest(layer)}},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("lab: image %s: %w", img.Ref, err)
	}
	return config, layer, nil
}

func (img Image) layer() ([]byte, error) {
	var buf bytes.Buffer
	if err := writeTar(&buf, img.Files); err != nil {
		return nil, fmt.Errorf("lab: image %s: %w", img.Ref, err)
	}
	return buf.Bytes(), nil
}

// writeTar sets all times to zero, so that the digest depends only on the files.
func writeTar(w io.Writer, files []File) error {
	tw := tar.NewWriter(w)
	for _, f := range files {
		h := &tar.Header{Name: f.Path, Mode: f.Mode, Size: int64(len(f.Data)), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		switch {
		case strings.HasSuffix(f.Path, "/"):
			h.Typeflag = tar.TypeDir
		case f.Link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, f.Link
		}
		if err := tw.WriteHeader(h); err != nil {
			return fmt.Errorf("file %q: %w", f.Path, err)
		}
		if _, err := tw.Write(f.Data); err != nil {
			return fmt.Errorf("file %q: %w", f.Path, err)
		}
	}
	return tw.Close()
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// busybox finds a statically linked busybox, because the image has no shared libraries.
func busybox() (string, error) {
	bin, err := exec.LookPath("busybox")
	if err != nil {
		return "", err
	}
	f, err := elf.Open(bin)
	if err != nil {
		return "", fmt.Errorf("%s: %w", bin, err)
	}
	defer f.Close()
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return "", fmt.Errorf("%s is not linked statically", bin)
	}
	return bin, nil
}

// BusyboxImage returns an image with a link in /bin for each of busybox's applets, and the
// few directories and files that programs expect.
func BusyboxImage() (Image, error) {
	bin, err := busybox()
	if err != nil {
		return Image{}, err
	}
	data, err := os.ReadFile(bin)
	if err != nil {
		return Image{}, err
	}
	applets, err := exec.Command(bin, "--list").Output()
	if err != nil {
		return Image{}, fmt.Errorf("lab: %s --list: %w", bin, err)
	}
	img := Image{
		Ref: Busybox,
		Env: []string{"PATH=/bin"},
		Files: []File{
			{Path: "bin/", Mode: 0o755},
			{Path: "etc/", Mode: 0o755},
			{Path: "root/", Mode: 0o700},
			{Path: "tmp/", Mode: 0o1777},
			{Path: "etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")},
			{Path: "etc/group", Mode: 0o644, Data: []byte("root:x:0:\nnogroup:x:65534:\n")},
			{Path: "bin/busybox", Mode: 0o755, Data: data},
		},
	}
	for applet := range strings.FieldsSeq(string(applets)) {
		if name := path.Base(applet); name != "busybox" {
			img.Files = append(img.Files, File{Path: "bin/" + name, Mode: 0o777, Link: "busybox"})
		}
	}
	return img, nil
}

// PauseImage returns an image of the program of the package pause: the file that KUBEPARTS_PAUSE names, or one that
// is built in dir.
func PauseImage(dir string) (Image, error) {
	bin := os.Getenv("KUBEPARTS_PAUSE")
	if bin == "" {
		bin = filepath.Join(dir, "pause")
		if err := BuildPause(bin); err != nil {
			return Image{}, err
		}
	}
	data, err := os.ReadFile(bin)
	if err != nil {
		return Image{}, err
	}
	return Image{
		Ref:        Pause,
		Entrypoint: []string{"/pause"},
		User:       "65535:65535",
		Files:      []File{{Path: "pause", Mode: 0o755, Data: data}},
	}, nil
}

// BuildPause builds the program of the package pause into a file. With the Go build cache this is fast from the
// second time on.
func BuildPause(file string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, "github.com/kubeparts/kubeparts/internal/lab/pause")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("lab: build the pause program: %w\n%s", err, out)
	}
	return nil
}
