package main

import (
	"bytes"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// passwd has the users of the images, for programs that look up their own.
const passwd = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:" + nonRoot + ":" + nonRoot + ":nonroot:/tmp:/sbin/nologin\n"

// An imageBuild is an image for several architectures that contains one static program.
type imageBuild struct {
	program program
	name    string // with the tag
	version string
	commit  string
	at      time.Time
	index   v1.ImageIndex
}

func (b *imageBuild) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       b.program.name,
		"org.opencontainers.image.description": b.program.does,
		"org.opencontainers.image.source":      "https://" + root,
		"org.opencontainers.image.version":     b.version,
		"org.opencontainers.image.revision":    b.commit,
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
}

// add adds the image of a platform: the program, an empty /tmp, and the users.
func (b *imageBuild) add(on platform, files []file) error {
	if b.index == nil {
		b.index = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	}
	content := []file{
		{"etc", fs.ModeDir | 0o755, nil}, {"etc/passwd", 0o644, []byte(passwd)},
		{"licenses", fs.ModeDir | 0o755, nil}, {"tmp", fs.ModeDir | fs.ModeSticky | 0o777, nil},
	}
	for _, f := range files {
		if f.name == "LICENSE" || f.name == "THIRD_PARTY_LICENSES" {
			f.name = "licenses/" + f.name
		}
		content = append(content, f)
	}
	var layerTar bytes.Buffer
	if err := writeTar(&layerTar, "", content, b.at); err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layerTar.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: b.at}, CreatedBy: "hack/release"}}); err != nil {
		return err
	}
	image, err = mutate.ConfigFile(image, b.config(on, image))
	if err != nil {
		return err
	}
	b.index = mutate.AppendManifests(b.index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: on.os, Architecture: on.arch}}})
	return nil
}

// config is the configuration of an image with the layers of another one.
func (b *imageBuild) config(on platform, image v1.Image) *v1.ConfigFile {
	c, err := image.ConfigFile()
	if err != nil {
		panic(err) // an image in memory has one
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Created = on.os, on.arch, v1.Time{Time: b.at}
	c.Config = v1.Config{
		Entrypoint: []string{"/" + b.program.name}, User: b.program.user, WorkingDir: "/tmp",
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, Labels: b.labels(),
	}
	return c
}

// write writes the image as an archive of an OCI layout, which `ctr images import`, `skopeo copy
// oci-archive:` and `docker load` read.
func (b *imageBuild) write(work, out string) error {
	dir := filepath.Join(work, b.program.name+".oci")
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	annotations := map[string]string{"org.opencontainers.image.ref.name": b.version, "io.containerd.image.name": b.name}
	index, ok := mutate.Annotations(b.index, b.labels()).(v1.ImageIndex)
	if !ok {
		panic("annotations of an index make an index")
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(annotations)); err != nil {
		return err
	}
	files, err := readTree(dir, dir)
	if err != nil {
		return err
	}
	return create(out, func(w io.Writer) error { return writeTar(w, "", files, b.at) })
}
