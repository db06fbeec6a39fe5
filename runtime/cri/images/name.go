package images

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"
)

// withTag adds the default tag to an image reference without tag and digest. It adds no
// registry.
func withTag(image string) (string, error) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", fmt.Errorf("couldn't parse image name %q: %w", image, err)
	}
	if reference.IsNameOnly(named) {
		return image + ":latest", nil
	}
	return image, nil
}

// repository returns the reference without tag and digest, not normalized.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		image = image[:colon]
	}
	return image
}

// fullName returns the normalized repository, docker.io/library/busybox for busybox. An
// invalid one is not changed.
func fullName(repository string) string {
	named, err := reference.ParseNormalizedNamed(repository)
	if err != nil {
		return repository
	}
	return named.Name()
}
