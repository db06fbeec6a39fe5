package imagegc

import (
	"strings"

	"github.com/distribution/reference"
)

// spelled returns a name of an image in the one form that all its spellings have:
// busybox is docker.io/library/busybox:latest, and of a tag and a digest the digest
// counts. What is no such name, an ID for one, is returned without "sha256:".
func spelled(name string) string {
	if id, ok := strings.CutPrefix(name, "sha256:"); ok {
		return id
	}
	if plain, ok := spellPlain(name); ok {
		return plain
	}
	return spellAny(name)
}

func spellAny(name string) string {
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

// spellings returns all by which an image is known.
func spellings(r *Record) []string {
	all := make([]string, 0, 1+len(r.Image.Tags)+len(r.Image.Digests))
	all = append(all, spelled(r.Image.ID))
	for _, names := range [][]string{r.Image.Tags, r.Image.Digests} {
		for _, name := range names {
			all = append(all, spelled(name))
		}
	}
	return all
}
