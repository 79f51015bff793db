cd service && tar -czf ../configs.tar.gz --exclude='old*' $(find . -name '*.conf' -not -path '*old*' -not -name '* *')
