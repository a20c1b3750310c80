module github.com/triegs/triegs

go 1.26
