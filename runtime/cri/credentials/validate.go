package credentials

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The versions of the API that plugins speak.
const (
	pluginGroup = "credentialprovider.kubelet.k8s.io/"
	pluginV1    = pluginGroup + "v1"
)

var pluginVersions = []string{pluginV1, pluginGroup + "v1beta1", pluginGroup + "v1alpha1"}

// validate returns what is wrong with providers, each with its field.
func validate(providers []Provider) []error {
	var errs []error
	if len(providers) == 0 {
		errs = append(errs, fmt.Errorf("providers: has none"))
	}
	seen := map[string]bool{}
	for i, p := range providers {
		bad := func(field, format string, args ...any) {
			errs = append(errs, fmt.Errorf("providers[%d].%s: %s", i, field, fmt.Sprintf(format, args...)))
		}
		if why := badName(p.Name); why != "" {
			bad("name", "%s", why)
		} else if seen[p.Name] {
			bad("name", "%q is there twice", p.Name)
		}
		seen[p.Name] = true
		if len(p.MatchImages) == 0 {
			bad("matchImages", "is required")
		}
		for j, m := range p.MatchImages {
			if _, err := parsePattern(m); err != nil {
				bad(fmt.Sprintf("matchImages[%d]", j), "pattern %v", err)
			}
		}
		if p.DefaultCacheDuration < 0 {
			bad("defaultCacheDuration", "is negative")
		}
		if !slices.Contains(pluginVersions, p.APIVersion) {
			bad("apiVersion", "is %q, not one of %s", p.APIVersion, strings.Join(pluginVersions, ", "))
		}
		for j, arg := range p.Args {
			if strings.ContainsRune(arg, 0) {
				bad(fmt.Sprintf("args[%d]", j), "has a zero byte")
			}
		}
		for j, e := range p.Env {
			if e.Name == "" || strings.ContainsAny(e.Name, "=\x00") {
				bad(fmt.Sprintf("env[%d].name", j), "%q is not the name of a variable", e.Name)
			}
			if strings.ContainsRune(e.Value, 0) {
				bad(fmt.Sprintf("env[%d].value", j), "has a zero byte")
			}
		}
		if p.TokenAttributes != nil {
			validateTokens(p, func(field, format string, args ...any) {
				bad("tokenAttributes."+field, format, args...)
			})
		}
	}
	return errs
}

func validateTokens(p Provider, bad func(field, format string, args ...any)) {
	t := p.TokenAttributes
	if t.Audience == "" {
		bad("serviceAccountTokenAudience", "is required")
	}
	switch t.CacheType {
	case CacheByToken, CacheByServiceAccount:
	case "":
		bad("cacheType", "is required: Token or ServiceAccount")
	default:
		bad("cacheType", "is %q, not Token or ServiceAccount", t.CacheType)
	}
	if slices.Contains(pluginVersions[1:], p.APIVersion) {
		bad("serviceAccountTokenAudience", "a plugin gets tokens with apiVersion %s only, not with %s", pluginV1, p.APIVersion)
	}
	// A pod without service account has no annotations to offer.
	if len(t.RequiredAnnotations) > 0 && !t.RequireServiceAccount {
		bad("requiredServiceAccountAnnotationKeys", "needs requireServiceAccount")
	}
	seen := map[string]bool{}
	for _, list := range []struct {
		field string
		keys  []string
	}{
		{"requiredServiceAccountAnnotationKeys", t.RequiredAnnotations},
		{"optionalServiceAccountAnnotationKeys", t.OptionalAnnotations},
	} {
		for j, key := range list.keys {
			field := fmt.Sprintf("%s[%d]", list.field, j)
			if why := validation.IsQualifiedName(strings.ToLower(key)); len(why) > 0 {
				bad(field, "%q is not a key of an annotation: %s", key, strings.Join(why, "; "))
			}
			if seen[key] {
				bad(field, "%q is there twice", key)
			}
			seen[key] = true
		}
	}
}

// badName says why a plugin cannot have the name; "" if it can. It has to stay
// in the directory of plugins, on any system.
func badName(name string) string {
	switch {
	case name == "":
		return "is required"
	case name == "." || name == "..":
		return fmt.Sprintf("%q is not a file name", name)
	}
	for _, r := range name {
		if r <= ' ' || r == 0x7f || strings.ContainsRune(`/\:`, r) {
			return fmt.Sprintf("%q is not a plain file name: it has %q", name, r)
		}
	}
	return ""
}
