package credentials

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A dockerConfig is what a docker config file holds.
type dockerConfig struct {
	entries []entry

	// auths is whether it has a section of credentials at all.
	auths bool

	// helpers names the credential helpers it speaks of, which nobody asks.
	helpers []string
}

// parseDockerConfigJSON reads a config.json, or the data of a secret of type
// kubernetes.io/dockerconfigjson: {"auths": {"reg.io": {"auth": "…"}}}.
//
// An entry that cannot be read is left out. The error names it, and the config
// holds the others; it is nil if there is nothing to read.
func parseDockerConfigJSON(data []byte) (*dockerConfig, error) {
	var file struct {
		Auths       *map[string]json.RawMessage `json:"auths"`
		CredsStore  string                      `json:"credsStore"`
		CredHelpers map[string]string           `json:"credHelpers"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, shapeError(err)
	}
	cfg := &dockerConfig{auths: file.Auths != nil}
	if file.CredsStore != "" {
		cfg.helpers = append(cfg.helpers, file.CredsStore)
	}
	for _, host := range slices.Sorted(maps.Keys(file.CredHelpers)) {
		cfg.helpers = append(cfg.helpers, file.CredHelpers[host])
	}
	slices.Sort(cfg.helpers)
	cfg.helpers = slices.Compact(cfg.helpers)
	if file.Auths == nil {
		return cfg, nil
	}
	var err error
	cfg.entries, err = parseAuths(*file.Auths)
	return cfg, err
}

// parseDockercfg reads a .dockercfg, or the data of a secret of type
// kubernetes.io/dockercfg: the same without the "auths" around it.
func parseDockercfg(data []byte) (*dockerConfig, error) {
	var auths map[string]json.RawMessage
	if err := json.Unmarshal(data, &auths); err != nil {
		return nil, shapeError(err)
	}
	entries, err := parseAuths(auths)
	return &dockerConfig{entries: entries, auths: auths != nil}, err
}

// parseAuths reads the entries, in the order of their keys.
func parseAuths(auths map[string]json.RawMessage) ([]entry, error) {
	var entries []entry
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(auths)) {
		p, err := parsePattern(key)
		if err != nil {
			errs = append(errs, fmt.Errorf("key %w", err))
			continue
		}
		cred, err := parseAuth(auths[key])
		if err != nil {
			errs = append(errs, fmt.Errorf("%q: %w", key, err))
			continue
		}
		entries = append(entries, entry{p, cred})
	}
	return entries, errors.Join(errs...)
}

// parseAuth reads one entry. What auth says goes before username and password.
func parseAuth(data []byte) (Credential, error) {
	var a struct {
		Auth          string `json:"auth"`
		Username      string `json:"username"`
		Password      string `json:"password"`
		Email         string `json:"email"`
		IdentityToken string `json:"identitytoken"`
		RegistryToken string `json:"registrytoken"`
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return Credential{}, shapeError(err)
	}
	c := Credential{
		Username: a.Username, Password: a.Password, Email: a.Email,
		IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken,
	}
	if a.Auth != "" {
		var ok bool
		if c.Username, c.Password, ok = decodeAuth(a.Auth); !ok {
			return Credential{}, errors.New("auth is not base64(username:password)")
		}
	}
	if c.IdentityToken != "" && c.Password == "" {
		c.Username = "" // docker login writes "user:" beside a token
	}
	return c, nil
}

// decodeAuth reads base64 with its padding or without.
func decodeAuth(auth string) (username, password string, ok bool) {
	plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(auth, "="))
	if err != nil {
		return "", "", false
	}
	return strings.Cut(string(plain), ":")
}

// shapeError says what is wrong with a JSON document, and nothing of what it
// says: package json quotes some of it.
func shapeError(err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("not JSON, at byte %d", syntax.Offset)
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if kind.Field == "" {
			return fmt.Errorf("is not a JSON object")
		}
		return fmt.Errorf("field %s has the wrong type", kind.Field)
	}
	return errors.New("cannot be decoded")
}
