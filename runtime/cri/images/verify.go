package images

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"
)

// A VerifyPolicy says for which images that are on the node a pod has to have
// credentials that an image was pulled with before (KEP-2535). If it has none,
// the image is pulled for it, which shows whether its own credentials will do;
// with the pull policy Never it does not get the image.
type VerifyPolicy string

const (
	// NeverVerify: every pod may use every image that is on the node.
	NeverVerify VerifyPolicy = "NeverVerify"

	// NeverVerifyPreloadedImages: every pod may use images that somebody else
	// brought to the node.
	NeverVerifyPreloadedImages VerifyPolicy = "NeverVerifyPreloadedImages"

	// NeverVerifyAllowlistedImages: every pod may use those of them that are in
	// Config.VerifyAllowlist.
	NeverVerifyAllowlistedImages VerifyPolicy = "NeverVerifyAllowlistedImages"

	// AlwaysVerify: no pod may use an image that was not pulled with
	// credentials which the pod has, or with none.
	AlwaysVerify VerifyPolicy = "AlwaysVerify"
)

// A verifier decides by a policy.
type verifier struct {
	policy   VerifyPolicy
	exact    map[string]bool // full names
	prefixes []string        // of full names, each with a slash at its end
}

func newVerifier(policy VerifyPolicy, allow []string) (verifier, error) {
	v := verifier{policy: policy, exact: map[string]bool{}}
	switch policy {
	case NeverVerify, NeverVerifyPreloadedImages, AlwaysVerify:
		if len(allow) > 0 {
			return v, fmt.Errorf("images: Config.VerifyAllowlist is for %s; Config.Verify is %s", NeverVerifyAllowlistedImages, policy)
		}
	case NeverVerifyAllowlistedImages:
	default:
		return v, fmt.Errorf("images: Config.Verify %q is none of %s, %s, %s, %s", policy,
			NeverVerify, NeverVerifyPreloadedImages, NeverVerifyAllowlistedImages, AlwaysVerify)
	}
	for _, pattern := range allow {
		if err := v.allow(pattern); err != nil {
			return v, fmt.Errorf("images: Config.VerifyAllowlist: %q: %w", pattern, err)
		}
	}
	return v, nil
}

// allow adds a pattern of the allowlist.
func (v *verifier) allow(pattern string) error {
	base, wild := strings.CutSuffix(pattern, "/*")
	if wild && (base == "docker.io" || base == "index.docker.io") {
		v.prefixes = append(v.prefixes, "docker.io/")
		return nil
	}
	name := base
	if wild {
		name += "/x" // a registry alone is not the name of an image
	}
	named, err := reference.ParseNormalizedNamed(name)
	switch {
	case strings.Contains(base, "*"):
		return fmt.Errorf("the only wildcard is /* at the end")
	case err != nil:
		return err
	case !reference.IsNameOnly(named):
		return fmt.Errorf("an entry has neither tag nor digest")
	case wild:
		v.prefixes = append(v.prefixes, strings.TrimSuffix(named.Name(), "x"))
	default:
		v.exact[named.Name()] = true
	}
	return nil
}

// required reports whether a pod has to show credentials for an image that is
// there; ours tells that we pulled it, or tried to.
func (v *verifier) required(image string, ours bool) bool {
	switch v.policy {
	case NeverVerify:
		return false
	case NeverVerifyPreloadedImages:
		return ours
	case NeverVerifyAllowlistedImages:
		return ours || !v.allowed(fullName(repository(image)))
	default:
		return true
	}
}

func (v *verifier) allowed(name string) bool {
	if v.exact[name] {
		return true
	}
	for _, prefix := range v.prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
