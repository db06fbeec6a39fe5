// Package auth finds out who somebody is and what he may do, for a server that a
// node offers: by client certificates, and by asking the API server.
//
// # What it decides
//
// Whose request that is: an [Authenticator] knows a user by a certificate
// ([Certificates]) or a token ([Tokens]), a [Chain] asks several. What he may do:
// [Access] asks the API server, and remembers. Which attributes a path of the
// kubelet's API has is the server's business.
//
// # Usage
//
//	tokens, err := auth.NewTokens(auth.TokensConfig{Reviews: client.AuthenticationV1().TokenReviews()}) // a client with a rate limit of its own
//	access, err := auth.NewAccess(auth.AccessConfig{Reviews: client.AuthorizationV1().SubjectAccessReviews()})
//	who := auth.Chain{auth.Certificates{Roots: roots}, tokens}
//	…
//	user, err := who.Authenticate(r)                // err: 401
//	d, err := access.Authorize(r.Context(), user, auth.Attributes{Verb: "get", Version: "v1", Resource: "nodes", Subresource: "metrics", Name: "n1"})
//	if err != nil { … }                             // 500
//	if !d.Allowed { … }                             // 403
//
// # Concurrency
//
// Everything may be called from any goroutine. Nothing is started: there is no
// Run. Requests that ask the same at the same time are one question.
//
// # Guarantees and limits
//
//   - A good token is asked about every 2 min, a bad one every 10 s, what is allowed
//     every 5 min and what is not every 30 s. Within these times a change at the
//     API server is not seen.
//   - Errors are not remembered, and are never a yes: an API server that cannot be
//     asked means that nobody gets in by a token.
//   - A call of the API server has ten seconds. 64 reviews are pending at most, 16 of
//     them for one remote host (tokens) or user (access), and 1024 requests wait for
//     them, 256 of one host or user; beyond that the error is [ErrTooManyReviews], at
//     once. What is cached is answered without waiting.
//   - Caches have a size, and good answers one of their own: bad tokens evict no good
//     ones. No token is kept, nor is one ever in an error.
//
// # Differences from the kubelet
//
//   - A token that is not good is remembered as well, for a short time, so that
//     repeated requests with it do not reach the API server.
//   - The kubelet bounds neither pending reviews nor the time of a call that hangs.
//
// # Testing
//
// Against API servers in memory, in virtual time.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package auth
