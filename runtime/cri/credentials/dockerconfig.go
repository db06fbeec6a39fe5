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

// A dockerConfig is the content of a docker config file.
type dockerConfig struct {
	entries []entry

	// auths reports whether the file has a section of credentials.
	auths bool

	// helpers are the configured credential helpers, which are not supported.
	helpers []string
}

// parseDockerConfigJSON parses a config.json, or the data of a secret of type
// kubernetes.io/dockerconfigjson: {"auths": {"reg.io": {"auth": "…"}}}.
//
// Invalid entries are omitted and named in the error. The config is nil if data is not a JSON
// object.
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

// parseDockercfg parses a .dockercfg, or the data of a secret of type kubernetes.io/dockercfg:
// the value of "auths" of a config.json.
func parseDockercfg(data []byte) (*dockerConfig, error) {
	var auths map[string]json.RawMessage
	if err := json.Unmarshal(data, &auths); err != nil {
		return nil, shapeError(err)
	}
	entries, err := parseAuths(auths)
	return &dockerConfig{entries: entries, auths: auths != nil}, err
}

// parseAuths parses the entries, in the order of their keys.
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

// parseAuth parses one entry. The field auth precedes username and password.
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
		c.Username = "" // docker login stores "user:" with a token
	}
	return c, nil
}

// decodeAuth decodes base64(username:password), with or without padding.
func decodeAuth(auth string) (username, password string, ok bool) {
	plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(auth, "="))
	if err != nil {
		return "", "", false
	}
	return strings.Cut(string(plain), ":")
}

// shapeError returns a description of err without the content of the document, which errors of
// package json quote.
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
