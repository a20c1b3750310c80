package sparql

import "strings"

// iriParts are the five components of RFC 3986, section 3; has tells a missing
// one from an empty one where that matters.
type iriParts struct {
	scheme, authority, path, query, fragment string
	hasScheme, hasAuthority, hasQuery        bool
	hasFragment                              bool
}

func splitIRI(s string) (p iriParts) {
	if i := strings.IndexAny(s, ":/?#"); i > 0 && s[i] == ':' {
		p.scheme, p.hasScheme, s = s[:i], true, s[i+1:]
	}
	s, p.fragment, p.hasFragment = strings.Cut(s, "#")
	s, p.query, p.hasQuery = strings.Cut(s, "?")
	if rest, ok := strings.CutPrefix(s, "//"); ok {
		p.hasAuthority = true
		i := strings.IndexByte(rest, '/')
		if i < 0 {
			i = len(rest)
		}
		p.authority, s = rest[:i], rest[i:]
	}
	p.path = s
	return p
}

func (p iriParts) String() string {
	var sb strings.Builder
	if p.hasScheme {
		sb.WriteString(p.scheme + ":")
	}
	if p.hasAuthority {
		sb.WriteString("//" + p.authority)
	}
	sb.WriteString(p.path)
	if p.hasQuery {
		sb.WriteString("?" + p.query)
	}
	if p.hasFragment {
		sb.WriteString("#" + p.fragment)
	}
	return sb.String()
}

// resolve makes the IRI that ref means against base: the reference resolution
// of RFC 3986, section 5.2. Without a base the reference stays as it is, and so
// does one that has a scheme.
func resolve(base, ref string) string {
	r := splitIRI(ref)
	if base == "" || r.hasScheme {
		return ref
	}
	b := splitIRI(base)
	r.scheme, r.hasScheme = b.scheme, b.hasScheme
	if r.hasAuthority {
		r.path = removeDots(r.path)
		return r.String()
	}
	r.authority, r.hasAuthority = b.authority, b.hasAuthority
	switch {
	case r.path == "":
		r.path = b.path
		if !r.hasQuery {
			r.query, r.hasQuery = b.query, b.hasQuery
		}
	case strings.HasPrefix(r.path, "/"):
		r.path = removeDots(r.path)
	case b.hasAuthority && b.path == "":
		r.path = removeDots("/" + r.path)
	default:
		r.path = removeDots(b.path[:strings.LastIndexByte(b.path, '/')+1] + r.path)
	}
	return r.String()
}

// removeDots is remove_dot_segments of RFC 3986, section 5.2.4.
func removeDots(path string) string {
	rooted := strings.HasPrefix(path, "/")
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	var out []string
	for i, s := range segments {
		last := i == len(segments)-1
		switch s {
		case ".", "..":
			if s == ".." && len(out) > 0 {
				out = out[:len(out)-1]
			}
			if last {
				out = append(out, "")
			}
		default:
			out = append(out, s)
		}
	}
	joined := strings.Join(out, "/")
	if rooted {
		return "/" + joined
	}
	return joined
}
