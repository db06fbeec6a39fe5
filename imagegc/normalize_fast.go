package imagegc

import "strings"

// normalizeFast is normalize for the names that image lists usually contain. It avoids the
// regular expressions of package reference, which take twenty times as long. ok is false for
// a name that it does not support, valid or not.
func normalizeFast(name string) (normalized string, ok bool) {
	if len(name) > 200 { // reference limits the length of a repository
		return "", false
	}
	rest, digest, digested := strings.Cut(name, "@")
	if digested && !isSHA256(digest) {
		return "", false
	}
	tag := ""
	if colon := strings.LastIndexByte(rest, ':'); colon > strings.LastIndexByte(rest, '/') {
		rest, tag = rest[:colon], rest[colon+1:]
		if !isTag(tag) {
			return "", false
		}
	}
	domain, path, found := strings.Cut(rest, "/")
	switch {
	case !found:
		if len(domain) == 64 && isHex(domain) { // an ID
			return "", false
		}
		domain, path = "docker.io", "library/"+domain
	case domain == "docker.io" && !strings.Contains(path, "/"):
		path = "library/" + path
	case domain == "index.docker.io": // reference renames it
		return "", false
	case domain != "localhost" && !strings.ContainsAny(domain, ".:"):
		domain, path = "docker.io", rest
	}
	if !isDomain(domain) || !isPath(path) {
		return "", false
	}
	switch {
	case digested:
		return domain + "/" + path + "@" + digest, true
	case tag != "":
		return domain + "/" + path + ":" + tag, true
	default:
		return domain + "/" + path + ":latest", true
	}
}

func isAlnum(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

// isSeparated reports whether s consists of lower-case letters and digits with single
// separators between them.
func isSeparated(s, separators string) bool {
	after := false // after a letter or digit
	for i := range len(s) {
		switch {
		case isAlnum(s[i]):
			after = true
		case after && strings.IndexByte(separators, s[i]) >= 0:
			after = false
		default:
			return false
		}
	}
	return after
}

func isPath(s string) bool { return isSeparated(s, "._-/") }

func isDomain(s string) bool {
	host, port, found := strings.Cut(s, ":")
	if found && (port == "" || strings.Trim(port, "0123456789") != "") {
		return false
	}
	return isSeparated(host, ".-")
}

func isTag(s string) bool {
	if s == "" || len(s) > 128 || s[0] == '.' || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !isAlnum(c) && !(c >= 'A' && c <= 'Z') && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}

func isSHA256(digest string) bool {
	hex, found := strings.CutPrefix(digest, "sha256:")
	return found && len(hex) == 64 && isHex(hex)
}
