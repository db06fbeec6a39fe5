package fakecri

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/distribution/reference"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// parseImage parses an image name like containerd: "busybox" is
// docker.io/library/busybox:latest, and a digest takes precedence over a tag.
func parseImage(name string) (reference.Named, error) {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return nil, err
	}
	if digested, ok := named.(reference.Canonical); ok {
		return reference.WithDigest(reference.TrimNamed(named), digested.Digest())
	}
	return reference.TagNameOnly(named), nil
}

// fullName returns the full name of an image, or an invalid name unchanged.
func fullName(name string) string {
	if named, err := parseImage(name); err == nil {
		return named.String()
	}
	return name
}

// everyImage is the key in Config.Images for all images without an entry.
const everyImage = "*"

// byFullName returns the map with full names as keys. A name without tag and digest, for
// all tags without an entry, remains without them.
func byFullName[T any](images map[string]T) (map[string]*T, error) {
	byName := make(map[string]*T, len(images))
	nameOf := map[string]string{}
	var all error
	for _, name := range slices.Sorted(maps.Keys(images)) {
		full := everyImage
		if name != everyImage {
			named, err := reference.ParseNormalizedNamed(name)
			if err == nil && !reference.IsNameOnly(named) {
				named, err = parseImage(name)
			}
			if err != nil {
				all = errors.Join(all, fmt.Errorf("image %s: %w", name, err))
				continue
			}
			full = named.String()
		}
		if other, ok := nameOf[full]; ok {
			all = errors.Join(all, fmt.Errorf("image %s: is the same image as %s", name, other))
			continue
		}
		nameOf[full] = name
		img := images[name]
		byName[full] = &img
	}
	return byName, all
}

// lookup returns the entry for an image, nil if there is none.
func lookup[T any](images map[string]*T, name reference.Named) *T {
	for _, key := range []string{name.String(), name.Name(), everyImage} {
		if img, ok := images[key]; ok {
			return img
		}
	}
	return nil
}

// checkLayers returns an error for layers with the same name and different sizes.
func checkLayers(images map[string]fake.Image) error {
	var err error
	sizes := map[string]uint64{}
	for _, name := range slices.Sorted(maps.Keys(images)) {
		for _, l := range images[name].Layers {
			if size, ok := sizes[l.Name]; ok && l.Name != "" && size != l.Size {
				err = errors.Join(err, fmt.Errorf("image %s: layer %q has %d bytes here, and %d elsewhere", name, l.Name, l.Size, size))
			}
			sizes[l.Name] = l.Size
		}
	}
	return err
}

// digestOf returns the digest of the manifest for a name: its own, or one derived from the
// name.
func digestOf(name reference.Named) string {
	if digested, ok := name.(reference.Canonical); ok {
		return digested.Digest().String()
	}
	return hashOf("manifest " + name.String())
}

// imageID returns the image ID for the digest of a manifest.
func imageID(manifest string) string { return hashOf("config " + manifest) }

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// userOf splits an image's user like containerd: a number is a UID, other text a name; the
// group is ignored.
func userOf(user string) (uid int64, name string, isUID bool) {
	user, _, _ = strings.Cut(user, ":")
	if user == "" {
		return 0, "", false
	}
	n, err := strconv.ParseInt(user, 10, 64)
	if err != nil {
		return 0, user, false
	}
	return n, "", true
}
