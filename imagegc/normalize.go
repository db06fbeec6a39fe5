package imagegc

import (
	"strings"

	"github.com/distribution/reference"
)

// normalize returns the canonical form of an image name: docker.io/library/busybox:latest for
// busybox. If a name has a tag and a digest, the digest applies. Other strings, such as IDs,
// are returned without "sha256:".
func normalize(name string) string {
	if id, ok := strings.CutPrefix(name, "sha256:"); ok {
		return id
	}
	if plain, ok := normalizeFast(name); ok {
		return plain
	}
	return normalizeAny(name)
}

func normalizeAny(name string) string {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return name
	}
	if digested, ok := named.(reference.Digested); ok {
		return named.Name() + "@" + digested.Digest().String()
	}
	return reference.TagNameOnly(named).String()
}

// repository returns a name without tag and digest.
func repository(name string) string {
	name, _, _ = strings.Cut(name, "@")
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name = name[:colon]
	}
	return name
}

// references returns the normalized ID and names of an image.
func references(r *Record) []string {
	all := make([]string, 0, 1+len(r.Image.Tags)+len(r.Image.Digests))
	all = append(all, normalize(r.Image.ID))
	for _, names := range [][]string{r.Image.Tags, r.Image.Digests} {
		for _, name := range names {
			all = append(all, normalize(name))
		}
	}
	return all
}
