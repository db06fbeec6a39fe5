package credentials

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
)

// A Credential authenticates to a registry. It has the fields of the CRI's AuthConfig.
//
// Package fmt, log/slog and encoding/json print its source and no secret data. This does not
// hold for a Credential in an unexported field of a struct: fmt does not call its methods.
type Credential struct {
	Username string
	Password string

	// Auth is base64(username:password). The keyrings of this package decode it
	// into Username and Password and leave it empty.
	Auth string

	// ServerAddress restricts the credential to one server. The keyrings of this package
	// leave it empty: they have matched the image, and runtimes compare it with the
	// server's address, which for docker.io is another name.
	ServerAddress string

	// IdentityToken is exchanged for an access token at the registry. If Password is
	// empty, Username is empty too, because runtimes ignore the token if there is a user
	// name.
	IdentityToken string

	// RegistryToken is sent to the registry as a bearer token.
	RegistryToken string

	// Email is not used by registries; it is part of Hash.
	Email string

	// Source is the source of the credential.
	Source Source
}

// Hash returns the hexadecimal SHA-256 hash of the credential without its source, for records of
// pulled images. For a user name with a password the value is the kubelet's, so that the records
// of a kubelet and an agent are compatible.
//
// A weak password can be guessed from its hash: do not publish it.
func (c Credential) Hash() string {
	doc, err := json.Marshal(struct {
		Username      string `json:"username,omitempty"`
		Password      string `json:"password,omitempty"`
		Auth          string `json:"auth,omitempty"`
		Email         string `json:"email,omitempty"`
		ServerAddress string `json:"serveraddress,omitempty"`
		IdentityToken string `json:"identitytoken,omitempty"`
		RegistryToken string `json:"registrytoken,omitempty"`
	}{c.Username, c.Password, c.Auth, c.Email, c.ServerAddress, c.IdentityToken, c.RegistryToken})
	if err != nil {
		return "" // does not happen with strings; "" matches no record
	}
	sum := sha256.Sum256(doc)
	return hex.EncodeToString(sum[:])
}

// String returns the source of the credential: "credential of secret shop/regcred".
func (c Credential) String() string { return "credential of " + c.Source.String() }

// Format prints String for any verb.
func (c Credential) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }

// LogValue implements slog.LogValuer with String.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalJSON encodes String. It applies to credentials in other values that are logged as
// JSON.
func (c Credential) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }

// A Source is the source of a credential.
type Source struct {
	// Kind is the owner of the credential. The zero value is SourceNode.
	Kind SourceKind

	// Namespace, Name and UID identify the secret or service account; empty
	// for the node's.
	Namespace, Name, UID string

	// Key is the key of the secret's data, ".dockerconfigjson".
	Key string

	// File is the path of the node's file.
	File string

	// Plugin is the name of the plugin that returned it; empty if none did.
	Plugin string
}

// SourceKind is the owner of a credential, which determines the pods that may use an image that
// was pulled with it (KEP-2535).
type SourceKind int

const (
	// SourceNode is a file of the node, or a plugin without service account: all pods may
	// use the credential.
	SourceNode SourceKind = iota

	// SourceSecret is a pull secret of the pod.
	SourceSecret

	// SourceServiceAccount is a plugin that was called with the pod's service account.
	SourceServiceAccount
)

func (k SourceKind) String() string {
	switch k {
	case SourceNode:
		return "node"
	case SourceSecret:
		return "secret"
	case SourceServiceAccount:
		return "service account"
	}
	return fmt.Sprintf("SourceKind(%d)", int(k))
}

// String returns, for example, "secret shop/regcred", "file /etc/config.json" or "plugin ecr for
// service account shop/web".
func (s Source) String() string {
	var of string
	switch s.Kind {
	case SourceSecret, SourceServiceAccount:
		of = s.Kind.String() + " " + s.Namespace + "/" + s.Name
	}
	switch {
	case s.Plugin != "" && of != "":
		return "plugin " + s.Plugin + " for " + of
	case s.Plugin != "":
		return "plugin " + s.Plugin
	case of != "":
		return of
	case s.File != "":
		return "file " + s.File
	}
	return "the node"
}
