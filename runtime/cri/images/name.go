package images

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"
)

// withTag returns the image with the default tag if it has neither tag nor
// digest, and otherwise unchanged: no registry is put before it (img-1).
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

// repository returns the image without tag and digest, as it was spelled.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		image = image[:colon]
	}
	return image
}

// fullName returns the repository with registry and path, so that different
// spellings of one compare equal: busybox is docker.io/library/busybox. What is
// no name of an image is returned as it is.
func fullName(repository string) string {
	named, err := reference.ParseNormalizedNamed(repository)
	if err != nil {
		return repository
	}
	return named.Name()
}
