package credentials

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// A Credential is one way to say to a registry who we are. Its fields are those
// of the CRI's AuthConfig, to be copied one by one.
//
// It shows where it comes from and never what it says, whether it is printed
// with package fmt, logged with log/slog or encoded as JSON. That holds as far
// as these reach its methods: fmt prints unexported fields of a struct without
// asking them.
type Credential struct {
	Username string
	Password string

	// Auth is base64(username:password). The keyrings of this package decode it
	// into Username and Password and leave it empty.
	Auth string

	// ServerAddress restricts the credential to one server. The keyrings of this
	// package leave it empty: they have matched the image, and runtimes compare
	// it with the server they talk to in the end, which for docker.io has
	// another name.
	ServerAddress string

	// IdentityToken is traded for an access token at the registry. Where it comes
	// without a password, Username is empty too: a runtime that finds a user
	// name does not look for the token.
	IdentityToken string

	// RegistryToken is sent to the registry as it is.
	RegistryToken string

	// Email is of no use to a registry. It is kept for it takes part in Hash.
	Email string

	// Source tells where the credential was found.
	Source Source
}

// Hash is the SHA-256 of what the credential says, in hex; where it was found
// does not take part. Records of pulled images carry it (img-5, img-6). For a
// user name with a password the value is the kubelet's, so that the records of
// one agent are good for the other.
//
// A hash of a weak password can be guessed from: keep it out of what everybody
// can read.
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
		return "" // cannot happen: seven strings. "" matches no record
	}
	sum := sha256.Sum256(doc)
	return hex.EncodeToString(sum[:])
}

// Hash returns a mark of a set of credentials, "" for none, that changes when
// somebody changes them: the key of a pull's back-off carries it, so that a new
// secret is tried at once (lq-17). Neither order nor repetition matters.
//
// Of credentials that a plugin gave only their origin takes part. A plugin may
// answer anew each time, and a back-off that began anew with each answer would
// be none.
func Hash(creds []Credential) string {
	if len(creds) == 0 {
		return ""
	}
	marks := make([]string, 0, len(creds))
	for _, c := range creds {
		if c.Source.Plugin != "" {
			marks = append(marks, fmt.Sprintf("plugin %q %q %q", c.Source.Plugin, c.Source.Namespace, c.Source.Name))
			continue
		}
		marks = append(marks, c.Hash())
	}
	slices.Sort(marks)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(marks), "\n")))
	return hex.EncodeToString(sum[:])
}

// String says where the credential comes from: "credential of secret shop/regcred".
func (c Credential) String() string { return "credential of " + c.Source.String() }

// Format prints String, whatever the verb.
func (c Credential) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }

// LogValue implements slog.LogValuer with String.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalJSON encodes String: a log that is written as JSON reaches a credential
// inside other values this way.
func (c Credential) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }

// A Source is where a credential was found.
type Source struct {
	// Kind says whose the credential is. The zero value is SourceNode.
	Kind SourceKind

	// Namespace, Name and UID are those of the secret or service account; empty
	// for the node's.
	Namespace, Name, UID string

	// Key is the key of the secret's data, ".dockerconfigjson".
	Key string

	// File is the path of the node's file.
	File string

	// Plugin is the name of the plugin that gave it; empty if none did.
	Plugin string
}

// SourceKind says whose a credential is, and so which pods may use an image that
// was pulled with it (KEP-2535).
type SourceKind int

const (
	// SourceNode is a file of the node, or a plugin that speaks for the node:
	// every pod may use them.
	SourceNode SourceKind = iota

	// SourceSecret is a pull secret of the pod.
	SourceSecret

	// SourceServiceAccount is a plugin that speaks for the pod's service account.
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

// String names the source for people: "secret shop/regcred", "file
// /etc/config.json", "plugin ecr for service account shop/web".
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
