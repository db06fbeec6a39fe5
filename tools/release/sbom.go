package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// An spdx is a document of SPDX 2.3 (https://spdx.github.io/spdx-spec/v2.3).
type spdx struct {
	Version           string             `json:"spdxVersion"`
	DataLicense       string             `json:"dataLicense"`
	ID                string             `json:"SPDXID"`
	Name              string             `json:"name"`
	DocumentNamespace string             `json:"documentNamespace"`
	CreationInfo      spdxCreation       `json:"creationInfo"`
	Packages          []spdxPackage      `json:"packages"`
	Relationships     []spdxRelationship `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID               string         `json:"SPDXID"`
	Name             string         `json:"name"`
	Version          string         `json:"versionInfo"`
	FileName         string         `json:"packageFileName,omitempty"`
	Supplier         string         `json:"supplier"`
	DownloadLocation string         `json:"downloadLocation"`
	FilesAnalyzed    bool           `json:"filesAnalyzed"`
	Checksums        []spdxChecksum `json:"checksums,omitempty"`
	LicenseConcluded string         `json:"licenseConcluded"`
	LicenseDeclared  string         `json:"licenseDeclared"`
	CopyrightText    string         `json:"copyrightText"`
	Purpose          string         `json:"primaryPackagePurpose"`
	Comment          string         `json:"comment,omitempty"`
	References       []spdxRef      `json:"externalRefs,omitempty"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxRef struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

// A subject is the program that a bill of materials describes.
type subject struct {
	name     string // of the program
	file     string // of the bill, without its ending
	version  string
	content  []byte
	created  time.Time
	licenses map[string]license // by path@version
}

// bill returns the bill of materials of a program from its build information: the program, the
// standard library, and each module, as packages that the program contains.
func bill(s subject, info *debug.BuildInfo) ([]byte, error) {
	sum := sha256.Sum256(s.content)
	program := newPackage("Program", s.name, s.version)
	program.FileName, program.Purpose, program.LicenseDeclared = s.name, "APPLICATION", "Apache-2.0"
	program.Checksums = []spdxChecksum{{"SHA256", hex.EncodeToString(sum[:])}}
	program.Supplier = "Organization: kubeparts"
	program.References = []spdxRef{purl(info.Path, s.version)}
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	program.Comment = fmt.Sprintf("GOOS=%s GOARCH=%s CGO_ENABLED=%s", settings["GOOS"], settings["GOARCH"], settings["CGO_ENABLED"])
	d := spdx{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: s.file,
		DocumentNamespace: "https://" + root + "/spdx/" + s.file + "-" + hex.EncodeToString(sum[:8]),
		CreationInfo:      spdxCreation{Created: s.created.UTC().Format(time.RFC3339), Creators: []string{"Organization: kubeparts", "Tool: hack/release"}},
		Packages:          []spdxPackage{program},
		Relationships:     []spdxRelationship{{"SPDXRef-DOCUMENT", "DESCRIBES", program.ID}},
	}
	add := func(p spdxPackage) {
		d.Packages = append(d.Packages, p)
		d.Relationships = append(d.Relationships, spdxRelationship{program.ID, "CONTAINS", p.ID})
	}
	std := newPackage("stdlib", "std", strings.TrimPrefix(info.GoVersion, "go"))
	std.LicenseDeclared, std.Supplier, std.References = "BSD-3-Clause", "Organization: The Go Authors", []spdxRef{purl("std", std.Version)}
	add(std)
	main := info.Main
	main.Version = s.version // a build in the module's directory records (devel)
	for _, m := range append([]debug.Module{main}, dependencies(info)...) {
		p := newPackage(m.Path, m.Path, m.Version)
		p.References = []spdxRef{purl(m.Path, m.Version)}
		switch l := s.licenses[m.Path+"@"+m.Version]; {
		case strings.HasPrefix(m.Path, root):
			p.LicenseDeclared = "Apache-2.0"
		case l.id != "":
			p.LicenseDeclared = l.id
		}
		if m.Sum != "" {
			p.Comment = "go.sum " + m.Sum
		}
		add(p)
	}
	out, err := json.MarshalIndent(d, "", " ")
	return append(out, '\n'), err
}

// notInID are the characters that an SPDX identifier cannot have.
var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func newPackage(id, name, version string) spdxPackage {
	const none = "NOASSERTION"
	return spdxPackage{
		ID: "SPDXRef-" + notInID.ReplaceAllString(id, "-"), Name: name, Version: version, Supplier: none, DownloadLocation: none,
		LicenseConcluded: none, LicenseDeclared: none, CopyrightText: none, Purpose: "LIBRARY",
	}
}

func purl(path, version string) spdxRef {
	return spdxRef{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")}
}
