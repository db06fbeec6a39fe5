package main

import (
	"encoding/json"
	"fmt"
)

// A statement is an in-toto statement with a SLSA provenance (https://slsa.dev/spec/v1.1/provenance).
// It is not signed; a workflow that signs it wraps it.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []digested `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     predicate  `json:"predicate"`
}

type digested struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

type predicate struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]string `json:"internalParameters"`
		ResolvedDependencies []digested        `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// provenance returns the provenance of the files with these SHA-256 checksums, by name and in order.
// It has no time and no machine, so that it is reproducible as the files are.
func provenance(sums []checksum, version, commit, goVersion string) ([]byte, error) {
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for _, c := range sums {
		s.Subject = append(s.Subject, digested{Name: c.name, Digest: map[string]string{"sha256": c.sum}})
	}
	build := &s.Predicate.BuildDefinition
	build.BuildType = fmt.Sprintf("https://%s/blob/%s/docs/releasing.md", root, version)
	build.ExternalParameters = map[string]string{"version": version, "command": "hack/release " + version}
	build.InternalParameters = map[string]string{"go": goVersion, "ldflags": ldflags, "flags": "-trimpath", "cgo": "0"}
	build.ResolvedDependencies = []digested{{URI: "git+https://" + root + "@refs/tags/" + version, Digest: map[string]string{"gitCommit": commit}}}
	s.Predicate.RunDetails.Builder.ID = "https://" + root + "/hack/release"
	out, err := json.MarshalIndent(s, "", " ")
	return append(out, '\n'), err
}
